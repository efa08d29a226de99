// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves package debug from a controller manager, over TLS, to users of the hub:
//
//	preview, err := controller.NewPreview(mgr.GetClient(), controller.Options{})
//	err = server.Add(mgr, server.Options{Address: ":8444", Placements: preview})
//
// The server checks the bearer token of a request by a TokenReview and the rights by a SubjectAccessReview. So the manager
// needs the right to create both. Reviews are cached, so a removed right ends within [AllowedFor].
package server
