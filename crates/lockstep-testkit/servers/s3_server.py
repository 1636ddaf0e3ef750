"""A server of S3, STS and IAM for the tests: moto's, on a free port of this machine.

It prints one line of JSON when it listens, and ends with its standard input, so that no test
leaves one behind. Buckets: `data` is empty, `many` holds 1,203 objects and two folder markers,
`public` an object `a` that anyone may read.

    s3_server.py             anyone may do anything
    s3_server.py --auth      signatures are checked: user `reader` may only assume the role `reader`,
                        which may read and write the bucket `data`
    s3_server.py --tls DIR   HTTPS, with a certificate whose authority is written to DIR/ca.pem
"""

import json
import sys
import threading
import urllib.request

import boto3
from certificate import certificate
from moto.s3.models import get_canned_acl, s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def fill():
    """Puts the buckets' objects straight into the server's memory."""
    backend = s3_backends["123456789012"]["aws"]
    for bucket in ("data", "many", "public"):
        backend.create_bucket(bucket, "us-east-1")
    for number in range(1203):
        backend.put_object("many", f"train/class-{number % 7}/{number:05}.jpg", b"x" * (number % 11))
    for marker in ("train/", "train/class-3/"):
        backend.put_object("many", marker, b"")
    backend.put_object("public", "a", b"for all").set_acl(get_canned_acl("public-read"))


def guard(endpoint):
    """Makes a user and a role, and turns the checks on."""

    def client(service):
        keys = {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
        return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", **keys)

    def allow(action, resource, **more):
        statement = {"Effect": "Allow", "Action": action, **resource, **more}
        return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

    iam = client("iam")
    iam.create_user(UserName="reader")
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    assume = allow("sts:AssumeRole", {"Resource": "*"})
    iam.put_user_policy(UserName="reader", PolicyName="assume", PolicyDocument=assume)
    trust = allow("sts:AssumeRole", {"Principal": {"AWS": "*"}})
    role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)["Role"]
    objects = {"Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"]}
    iam.put_role_policy(RoleName="reader", PolicyName="data", PolicyDocument=allow("s3:*", objects))
    request = urllib.request.Request(
        f"{endpoint}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(request).read()
    return {"key": key["AccessKeyId"], "secret": key["SecretAccessKey"], "role": role["Arn"]}


def one_at_a_time(application):
    """Conditional writes, one after the other: in S3 they are one step, and moto looks first and then writes."""
    lock = threading.Lock()

    def serve(environ, start_response):
        conditional = "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ
        if environ["REQUEST_METHOD"] != "PUT" or not conditional:
            return application(environ, start_response)
        with lock:
            return list(application(environ, start_response))

    return serve


def main(arguments):
    tls = certificate(arguments[1]) if arguments[:1] == ["--tls"] else None
    application = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, ssl_context=tls)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    fill()
    more = guard(endpoint) if arguments == ["--auth"] else {}
    print(json.dumps({"endpoint": endpoint, **more}), flush=True)
    sys.stdin.read()


main(sys.argv[1:])
