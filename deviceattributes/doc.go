// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deviceattributes adds the attributes of DeviceAttributes objects to the devices of ResourceSlices. Selectors,
// constraints, preferences and every report then read a device as if its driver had published the attributes.
//
// A program that reads slices once calls [Apply]. A program that watches slices keeps an [Enricher]:
//
//	enricher, err := deviceattributes.NewEnricher(deviceattributes.Config{})
//	err = enricher.Set(ctx, objects)                              // whenever an object changes
//	enriched, report, err := enricher.Enrich(ctx, slices, nodes)  // whenever an object, a slice or a node changes
//
// Set compiles expressions, and Enrich evaluates them. Neither belongs in a scheduling cycle.
//
// # Steps
//
//  1. Set judges each object. An object with a mistake is rejected as a whole. At most [v1alpha1.MaxDeviceAttributes] objects are
//     in effect, the oldest ones.
//  2. Enrich collects the domains of drivers: the names of the drivers, and the domains of the attributes. It
//     rejects objects whose domain is among them.
//  3. For each slice, Enrich finds the objects for its driver and nodes. Without such an object, the slice is returned as the same
//     pointer.
//  4. For each device, Enrich collects the values of all objects. Different values for one attribute are a conflict, and the
//     device does not get the attribute. A device that would exceed Kubernetes' limits gets no attributes at all.
//  5. The result is kept for the next call. It is used again while the slice, its objects and the node labels that matter are the
//     same.
//
// Every failure leaves an attribute out. So an expression that reads the attribute fails, and a selector does not match.
package deviceattributes
