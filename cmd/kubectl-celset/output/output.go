// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output defines the header of the commands' structured output. An OpenAPI schema for each kind is in the same folder, in
// a file with the name of the kind.
package output

// APIVersion is the version of all kinds. A field may be added without a new version.
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

// Meta identifies the kind of a document.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// NewMeta returns the Meta of a kind.
func NewMeta(kind string) Meta { return Meta{APIVersion: APIVersion, Kind: kind} }
