// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package messages knows what celset says to users when something is wrong or a pod
// waits: catalogue.yaml has for each text in the code the cause and the cure, and
// docs/errors.md is written from it.
//
//	said, err := messages.Scan(root)          // what the code says
//	catalogue, err := messages.Read(content)  // what catalogue.yaml says of it
//	err = catalogue.Check(said)               // what does not fit
//	page := catalogue.Page()
//
// The code is the source: a test demands that each text of the packages in [Packages]
// has an entry, and that each entry's texts are in the code, letter by letter. Whoever
// adds a message or changes one is told to add or change what the page says of it.
package messages
