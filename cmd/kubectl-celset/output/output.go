// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output has what the structured output of the commands begins with. Beside it is an OpenAPI
// schema of each kind, named as the kind.
package output

// APIVersion is that of all kinds. A field may be added without another version.
const APIVersion = "kubectl.celset.dev/v1alpha1"

// Kinds of output.
const (
	CheckReport         = "CheckReport"
	FragmentationReport = "FragmentationReport"
	Explanation         = "Explanation"
	GroupExplanation    = "GroupExplanation"
	Picture             = "Picture"
	PlacementReport     = "PlacementReport"
	PlacementDecided    = "PlacementExplanation"
)

// Meta says what a document is.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// NewMeta is that of a kind.
func NewMeta(kind string) Meta { return Meta{APIVersion: APIVersion, Kind: kind} }
