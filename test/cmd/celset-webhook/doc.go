// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celsetwebhook has tests of the program celset-webhook and of the admission policies in the manifests, and no code of
// its own. The tests apply the manifests to an API server, and run replicas of the program in this process.
package celsetwebhook
