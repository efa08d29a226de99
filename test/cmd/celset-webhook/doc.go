// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celsetwebhook has tests of the program celset-webhook and of the policies beside it, and no code of its own. An API
// server has the manifests. The tests run the replicas of the program in this process, with flags.
package celsetwebhook
