# One bucket for data, embeddings and runs, which jobs reach by the role of their service account.

resource "aws_s3_bucket" "runs" {
  #checkov:skip=CKV_AWS_18:Requests are not logged: there are thousands in a run
  #checkov:skip=CKV_AWS_144:Copies in one region are enough for what can be trained again
  #checkov:skip=CKV_AWS_145:Encrypted with S3's keys; keys of one's own cost a request each
  #checkov:skip=CKV2_AWS_62:Nobody waits for notices
  bucket_prefix = "${var.name}-runs-"
}

resource "aws_s3_bucket_public_access_block" "runs" {
  bucket                  = aws_s3_bucket.runs.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "runs" {
  bucket = aws_s3_bucket.runs.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_versioning" "runs" {
  bucket = aws_s3_bucket.runs.id

  versioning_configuration {
    status = "Enabled"
  }
}

# Checkpoints are replaced all the time: what was replaced is kept for a week.
resource "aws_s3_bucket_lifecycle_configuration" "runs" {
  bucket     = aws_s3_bucket.runs.id
  depends_on = [aws_s3_bucket_versioning.runs]

  rule {
    id     = "replaced"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 7
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }
}
