// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission rejects misconfigured Placements before they are stored. It uses [placement.Scheduler.Validate], as the
// controller does, so both agree. [Checker] is the check, [Register] adds it to a server as a webhook:
//
//	server := webhook.NewServer(webhook.Options{CertDir: "/certificates"})
//	err := admission.Register(server, admission.Options{})
//	err = server.Start(ctx)
//
// The server may host other webhooks, too. This configuration registers the webhook with the API server:
//
//	apiVersion: admissionregistration.k8s.io/v1
//	kind: ValidatingWebhookConfiguration
//	metadata: {name: celset-placement}
//	webhooks:
//	- name: placements.celset.dev
//	  admissionReviewVersions: [v1]
//	  sideEffects: None
//	  matchPolicy: Equivalent
//	  clientConfig:
//	    service: {namespace: celset-system, name: celset-webhook, path: /validate-placements}
//	    caBundle: ...
//	  rules:
//	  - apiGroups: [cluster.open-cluster-management.io]
//	    apiVersions: [v1beta1]
//	    resources: [placements]
//	    operations: [CREATE, UPDATE]
//
// # Checked Placements
//
// The webhook checks the Placements that celset decides ([placement.Responsible]), except Placements that are being deleted.
//
// # Updates
//
// A stored Placement was admitted once, perhaps by a hub without this webhook. So an update is rejected only for new mistakes:
// a field is wrong now, and the old Placement doesn't have the same wrong value. An old mistake is a warning, even if it has
// moved within its list. Updates of other metadata and of finalizers always pass. So does an update that adds the annotation
// for celset to a stored Placement. The annotation celset.dev/tie-break is checked like the fields of the spec.
package admission
