// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds tests that the generated files of this repository are up to date: the CustomResourceDefinitions in
// manifests/placement, and the JSON schemas in schemas. It has no code of its own.
package crds
