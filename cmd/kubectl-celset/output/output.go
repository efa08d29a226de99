// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output defines the header of the structured output (JSON or YAML) of all commands. For each kind of output, this
// folder has an OpenAPI schema in a file with the name of the kind.
package output

// APIVersion is the API version of all kinds. Adding a field does not change the version.
const APIVersion = "kubectl.celset.dev/v1alpha1"

// The kinds of structured output.
const (
	CheckReport          = "CheckReport"
	FragmentationReport  = "FragmentationReport"
	Explanation          = "Explanation"
	GroupExplanation     = "GroupExplanation"
	Picture              = "Picture"
	PlacementReport      = "PlacementReport"
	PlacementDecided     = "PlacementExplanation"
	ExpressionTestReport = "ExpressionTestReport"
)

// Meta holds the apiVersion and kind of an output document.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// NewMeta returns the Meta of a kind.
func NewMeta(kind string) Meta { return Meta{APIVersion: APIVersion, Kind: kind} }
