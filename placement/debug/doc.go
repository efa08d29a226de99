// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debug explains over HTTP why a Placement selects its clusters:
//
//	handler, err := debug.NewHandler(debug.Options{
//		Placements: preview, Authenticator: authenticator, Authorizer: authorizer,
//	})
//
// Package debug/server serves it from a controller manager.
//
// # Requests
//
//   - GET /debug/placements/<namespace>/<name> decides a Placement of the hub. It requires the right to get that Placement.
//   - POST /debug/placements/ decides the Placement in the body: JSON or YAML, at most 128 KiB, with the defaults of the API.
//     It requires the right to create Placements in the namespace. The former decisions come from the Placement of the same
//     name, if it exists. So the answer shows the effect of a change.
//
// Neither request writes anything. The query parameter cluster limits the report to the named cluster and may be repeated. The
// parameter now sets the time of the decision. With it, the same request has the same answer until an object changes.
//
//	curl -H "Authorization: Bearer $TOKEN" "https://$HOST/debug/placements/team/web?cluster=eu-1&now=2026-08-01T22:00:00Z"
//	curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/yaml' --data-binary @web.yaml https://$HOST/debug/placements/
//
// The query parameter "without" is the index of a predicate, counted from 0. The Placement is decided without this predicate.
// This requires no other right, because a report includes the clusters that a predicate removes.
//
// # The page
//
// GET /debug/placements/ returns the web page of package internal/page. The page requests the report for a Placement and shows
// the result for each cluster. It also shows the clusters that would be selected without a predicate. It is the same for all
// users and has no data of the hub, so the page and its files need no token. It sends the user's token with each request to this
// server and doesn't store the token. Its content security policy allows only files of this server.
//
// A file of the page, such as src/main.js, has the path of a Placement of the same name. A request with the header Authorization
// is for the Placement, and a request without this header is for the file.
//
// # Answers
//
// The body is a [report.Report] with all reasons for the decision, even if the Placement is misconfigured and keeps its former
// decision. If the decision fails, the Report has an error, and the HTTP status is 500. Any other failure returns a Status of
// the Kubernetes API. Its code is 400 for an invalid Placement, 401 or 403 for missing rights, and 404, 405, 413 or 415 as in
// HTTP.
//
// Without the right to get a Placement, GET returns 403, even if the Placement doesn't exist. But a report names clusters even
// if the user may not read ManagedClusters, as a PlacementDecision on the hub does.
package debug
