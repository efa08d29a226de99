// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests has no code of its own. Its tests render every kustomization in manifests/, and the Helm chart with each
// combination of its switches. A real API server validates the objects by a server-side dry run that rejects unknown fields.
// Other tests must run the programs with exactly the rendered RBAC rights. The chart and the kustomizations must render the
// same objects.
//
//	go test ./test/manifests/...
//
// CustomResourceDefinitions in testdata validate the objects of cert-manager and of the Prometheus operator. They contain only
// the fields in use and were written by hand from the documentation of the APIs. The tests don't check that cert-manager and
// the operator accept the objects.
package manifests
