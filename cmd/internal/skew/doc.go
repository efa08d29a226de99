// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew is for programs that are newer than the API server they talk to: celset is
// built for one version of Kubernetes and runs on several.
//
//	server, err := skew.Await(ctx, client.Discovery())     // waits for an API server that does not answer
//	if err := skew.Check(server); err != nil { … }         // too old for what celset needs
//	missing, err := skew.Missing(client.Discovery(), skew.Allocation...)
//
// What a version has follows from its feature gates, which k8s.io/component-base emulates: see
// cmd/celset-scheduler/app for who does that.
package skew
