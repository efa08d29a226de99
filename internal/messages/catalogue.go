// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Catalogue is what catalogue.yaml says. The comments there are for who writes it.
type Catalogue struct {
	// Introduction is what the page says before the entries.
	Introduction string  `json:"introduction"`
	Groups       []Group `json:"groups"`
	// Places are texts that only say where: what follows them has an entry.
	Places []string `json:"places"`
	// NotMessages are texts that no user gets to read.
	NotMessages []string `json:"notMessages"`
}

// Group is the entries about one thing.
type Group struct {
	Title        string  `json:"title"`
	Introduction string  `json:"introduction"`
	Entries      []Entry `json:"entries"`
}

// Entry is what there is to know about a message.
type Entry struct {
	ID    string   `json:"id"`
	Texts []string `json:"texts"`
	// Elsewhere is for texts that Kubernetes or CEL make.
	Elsewhere bool   `json:"elsewhere"`
	Cause     string `json:"cause"`
	Cure      string `json:"cure"`
}

// Read reads a catalogue. A field that it does not know, or that is there twice, is an
// error. What else can be wrong [Catalogue.Check] finds.
func Read(content []byte) (*Catalogue, error) {
	c := &Catalogue{}
	if err := yaml.UnmarshalStrict(content, c); err != nil {
		return nil, fmt.Errorf("read the catalogue of messages: %w", err)
	}
	return c, nil
}
