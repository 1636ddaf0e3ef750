# Machines are in private subnets and reach the outside through one gateway; S3 is reached without it.

data "aws_availability_zones" "here" {
  #checkov:skip=CKV_AWS_394:Only the first two are used
  state = "available"
}

locals {
  zones = slice(data.aws_availability_zones.here.names, 0, 2)
}

resource "aws_vpc" "lockstep" {
  #checkov:skip=CKV2_AWS_11:Traffic is not logged: all of a gang's is encrypted and there is a lot of it
  cidr_block           = "10.42.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

resource "aws_default_security_group" "closed" {
  vpc_id = aws_vpc.lockstep.id
}

resource "aws_subnet" "public" {
  count             = length(local.zones)
  vpc_id            = aws_vpc.lockstep.id
  availability_zone = local.zones[count.index]
  cidr_block        = cidrsubnet(aws_vpc.lockstep.cidr_block, 8, count.index)
  tags              = { Name = "${var.name}-public-${count.index}" }
}

resource "aws_subnet" "private" {
  count             = length(local.zones)
  vpc_id            = aws_vpc.lockstep.id
  availability_zone = local.zones[count.index]
  cidr_block        = cidrsubnet(aws_vpc.lockstep.cidr_block, 4, count.index + 1)
  tags              = { Name = "${var.name}-private-${count.index}" }
}

resource "aws_internet_gateway" "lockstep" {
  vpc_id = aws_vpc.lockstep.id
}

resource "aws_eip" "out" {
  domain = "vpc"
}

resource "aws_nat_gateway" "out" {
  allocation_id = aws_eip.out.id
  subnet_id     = aws_subnet.public[0].id
  depends_on    = [aws_internet_gateway.lockstep]
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.lockstep.id

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.lockstep.id
  }
}

resource "aws_route_table" "private" {
  vpc_id = aws_vpc.lockstep.id

  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.out.id
  }
}

resource "aws_route_table_association" "public" {
  count          = length(local.zones)
  subnet_id      = aws_subnet.public[count.index].id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table_association" "private" {
  count          = length(local.zones)
  subnet_id      = aws_subnet.private[count.index].id
  route_table_id = aws_route_table.private.id
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id          = aws_vpc.lockstep.id
  service_name    = "com.amazonaws.${var.region}.s3"
  route_table_ids = [aws_route_table.private.id]
}
