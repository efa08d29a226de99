// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enrichment adds the attributes of DeviceAttributes objects to the ResourceSlices that the scheduler reads.
//
// An [Enrichment] belongs to a scheduler with all its profiles. It has these parts:
//
//  1. The follower reads the objects (follow.go). It also detects whether the API server serves the kind.
//  2. A background goroutine calls package deviceattributes (pass.go): once for each ResourceSlice and each change of an object.
//     The result of a pass is a view, which never changes.
//  3. The lister replaces each ResourceSlice by its entry in the latest view (lister.go). Scheduling cycles call it. It computes
//     nothing.
//  4. The reporter writes the status and the events of the objects if the scheduler leads (report.go).
//
// Once the objects are read, no ResourceSlice is listed without its attributes. Until the background goroutine has processed the
// slice, the lister replaces its pool by an incomplete one, and no devices of an incomplete pool are allocated.
package enrichment
