"""A certificate authority of one test run, and TLS servers' contexts with certificates from it."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
_EXPIRED = datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)


class CertificateAuthority:
    """Signs certificates; ``ca_file`` is the bundle that trusts it (PEM, in ``folder``)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        self._count = 0
        certificate = (
            _builder(self._name, self._name, self._key, _END)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        path = folder / "authority.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.ca_file = str(path)

    def server_context(self, *names: str, expired: bool = False) -> ssl.SSLContext:
        """Return the context of a server whose certificate holds these DNS names and addresses."""
        path = self.server_file(*names, expired=expired)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def server_file(self, *names: str, expired: bool = False) -> str:
        """Return a PEM file with a server's certificate and key."""
        self._count += 1
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        certificate = (
            _builder(subject, self._name, key, _EXPIRED if expired else _END)
            .add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        path = self._folder / f"server-{self._count}.pem"
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + pem)
        return str(path)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_START)
        .not_valid_after(end)
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
