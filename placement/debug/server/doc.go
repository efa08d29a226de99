// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves package debug from a controller manager, over TLS and to those
// whom the hub knows:
//
//	preview, err := controller.NewPreview(mgr.GetClient(), controller.Options{})
//	err = server.Add(mgr, server.Options{Address: ":8444", Placements: preview})
//
// Who asks shows a bearer token, which a TokenReview proves, and a SubjectAccessReview
// says what they may. So the manager needs the right to create both. The answers of
// the hub are remembered for a short while: a right that is taken away ends within
// [AllowedFor].
package server
