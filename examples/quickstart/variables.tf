variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "zone" {
  description = "A zone that offers v5e."
  type        = string
  default     = "us-west4-a"
}

variable "slices" {
  description = "How many slices to make, to give to the queue and to train on."
  type        = number
  default     = 2
}
