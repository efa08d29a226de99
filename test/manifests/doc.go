// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests has no code of its own. Its tests render every kustomization in
// manifests/ and the Helm chart with each combination of its switches, have a real API
// server validate what comes out (server-side dry run, unknown fields are errors), and
// compare: the rights that are rendered are those under which other tests run the
// programs, and the chart renders what the kustomizations render.
//
//	go test ./test/manifests/...
//
// Objects of cert-manager and of the Prometheus operator are validated by
// CustomResourceDefinitions in testdata that know only the fields in use. They were written
// by hand from the documentation of their APIs; that cert-manager and the operator themselves
// take the objects is not tested.
package manifests
