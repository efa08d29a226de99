// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew supports programs that are newer than their API server: celset is built for one version of Kubernetes and runs
// with several.
//
//	server, err := skew.Await(ctx, client.Discovery())     // waits for an API server that does not answer
//	if err := skew.Check(server); err != nil { … }         // too old for what celset needs
//	missing, err := skew.Missing(client.Discovery(), skew.Allocation...)
//
// The features of a version follow from its feature gates, which k8s.io/component-base emulates. See cmd/celset-scheduler/app.
package skew
