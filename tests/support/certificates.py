"""An authority of our own and a certificate by it for 127.0.0.1 and localhost."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Certificates:
    authority: Path
    """Its certificate, PEM."""
    server: Path
    """Certificate and key of a server, PEM."""


def make_certificates(folder: Path, *, name: str = "localhost") -> Certificates:
    """Good for an hour."""
    now = datetime.datetime.now(datetime.UTC)
    ours = ec.generate_private_key(ec.SECP256R1())
    title = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority of a test")])

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(title)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )

    authority = builder(title, ours).add_extension(x509.BasicConstraints(True, None), True).sign(ours, hashes.SHA256())
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    signed = builder(subject, key).add_extension(x509.SubjectAlternativeName(names), False).sign(ours, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    found = Certificates(folder / "authority.pem", folder / "server.pem")
    found.authority.write_bytes(authority.public_bytes(pem))
    found.server.write_bytes(signed.public_bytes(pem) + private)
    return found
