// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert writes constraints in another form: that of KEP-5254, which no released
// API server stores,
//
//	constraints:
//	- requests: [mla]
//	  cel:
//	    expression: size(devices) == 4
//
// and that of celset.dev, which every API server since 1.34 does:
//
//	constraints:
//	- requests: [mla]
//	  matchAttribute: celset.dev/ring4
//	config:
//	- opaque:
//	    driver: celset.dev
//	    parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring4, expression: size(devices) == 4}
//
// [ToCelset] and [ToKEP] change ResourceClaims and ResourceClaimTemplates of any version in
// place, and nothing else in them: fields that are not known here stay.
//
// The KEP's form has no names. [ToKEP] keeps them in the annotation celset.dev/constraint-names, and
// [ToCelset] takes them from there, so that there and back changes nothing.
package convert
