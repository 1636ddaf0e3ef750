"""Certificates for servers of tests."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certificate(folder):
    """A certificate for 127.0.0.1 that is its own authority."""
    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def sign(subject, key, issuer_key, authority, *extensions):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name("lockstep tests"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(issuer_key, hashes.SHA256())

    def pem(certificate):
        return certificate.public_bytes(serialization.Encoding.PEM)

    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    usage = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    with open(f"{folder}/ca.pem", "wb") as file:
        file.write(pem(sign("lockstep tests", authority_key, authority_key, True)))
    with open(f"{folder}/server.pem", "wb") as file:
        file.write(pem(sign("127.0.0.1", key, authority_key, False, address, usage)))
    with open(f"{folder}/server.key", "wb") as file:
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.TraditionalOpenSSL
        file.write(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return f"{folder}/server.pem", f"{folder}/server.key"
