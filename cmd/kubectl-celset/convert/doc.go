// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert replaces constraints in the form of KEP-5254, which no released API server stores,
//
//	constraints:
//	- requests: [mla]
//	  cel:
//	    expression: size(devices) == 4
//
// by constraints in the form of celset.dev, which every API server since 1.34 stores:
//
//	constraints:
//	- requests: [mla]
//	  matchAttribute: celset.dev/ring4
//	config:
//	- opaque:
//	    driver: celset.dev
//	    parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring4, expression: size(devices) == 4}
//
// [ToCelset] changes ResourceClaims and ResourceClaimTemplates of any version in place. It keeps unknown fields.
package convert
