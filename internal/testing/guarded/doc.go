// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guarded runs the guard against double allocation beside a control plane of a test, as
// manifests/overlays/webhook-guard renders it: with its rights, its flags and its registration. What differs are
// the paths, addresses and times of the test.
//
//	overlay, err := guarded.Render(dir)
//	err = overlay.Install(ctx, cp.RESTConfig())
//	replica, err := overlay.Start(ctx, cp, guarded.Options{Name: "guard", Kubeconfig: kubeconfig, ...})
//	err = overlay.Ask(ctx, cp.RESTConfig(), replica.Address)
//
// The control plane knows env.Webhook, whose kubeconfig it is, as one of its users.
package guarded
