// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 defines CELDeviceConstraint, a CEL expression over the set of devices allocated for a claim (KEP-5254). It
// also defines [CELDevicePreference] and [CELNodeSetConstraint]. Users write them into ResourceClaims, ResourceClaimTemplates and
// DeviceClasses of an unmodified Kubernetes API server.
//
// A constraint has two parts. The definition is an opaque configuration for the driver [DriverName] whose parameters are a
// [CELDeviceConstraint]. The reference is an entry of the claim's constraints whose matchAttribute is celset.dev/<name>. The
// claim itself contains the definition, or a DeviceClass of one of the requests that the reference covers:
//
//	constraints:
//	- requests: [mla]
//	  matchAttribute: celset.dev/ring4    # the reference
//	config:
//	- opaque:
//	    driver: celset.dev                # the definition
//	    parameters:
//	      apiVersion: celset.dev/v1alpha1
//	      kind: CELDeviceConstraint
//	      name: ring4
//	      expression: devices.all(d, d.attributes['mla.example.com'].healthy)
//
// No device has an attribute in the domain celset.dev. So a scheduler that does not support these constraints can't allocate such
// a claim at all: it fails closed.
//
// The scheduler calls [Resolve] to find the expressions of a claim. An admission webhook uses the same code: [ClaimCarrier] or
// [TemplateCarrier], then [Carrier.Definitions] or [Carrier.Resolve], and [ClassDefinitions] for a DeviceClass. This package
// neither compiles nor evaluates expressions.
// +groupName=celset.dev
package v1alpha1
