package kube

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Account asks the API server who it takes us for: on GKE an e-mail address.
func (c *Client) Account(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", &Error{Verb: "asking for", Kind: "account", Key: "in use", Cluster: c.Name, Err: err}
	}
	return review.Status.UserInfo.Username, nil
}
