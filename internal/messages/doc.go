// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package messages knows what celset says to users when something is wrong or a pod
// waits: for each text in the code the cause and the cure. docs/errors.md is written
// from it.
//
//	texts, err := messages.Scan(root)      // what the code says
//	for _, e := range messages.Catalogue() {
//		...                            // e.Texts are some of them, e.Cure what to do
//	}
//	page := messages.Page(messages.Catalogue())
//
// The code is the source: a test demands that each text of the packages in [Packages]
// has an entry, and that each entry's texts are in the code, letter by letter. Whoever
// adds a message or changes one is told to add or change what the page says of it.
package messages
