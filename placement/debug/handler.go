// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/internal/page"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/report"
)

// Path is the URL path of the handler. The handler also serves all paths below.
const Path = "/debug/placements"

const (
	// concurrent is the maximum number of Placements decided at the same time. Nothing is remembered between requests, so each
	// decision takes as long as the first decision of a Placement. The controller needs processors, too.
	concurrent = 2
	// maxWaiting is the maximum number of waiting requests of one namespace.
	maxWaiting = 8

	// DefaultTimeout is the default time limit of one request.
	DefaultTimeout = 30 * time.Second
	// clusterParameter is the query parameter that names a cluster to report. nowParameter sets the time of the decision.
	clusterParameter = "cluster"
	nowParameter     = "now"
)

var resource = schema.GroupVersionResource{Group: clusterv1beta1.GroupName, Version: clusterv1beta1.GroupVersion.Version, Resource: "placements"}

// Placements reads and decides the Placements of a hub.
type Placements interface {
	// Placement returns a Placement. If it does not exist, apierrors.IsNotFound is true for the error.
	Placement(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error)
	// Schedule decides a Placement and writes nothing. The Placement need not exist on the hub. at is the time of the decision,
	// zero for now. Both the result and the error may be set, as in [placement.Scheduler.Schedule].
	Schedule(ctx context.Context, object *clusterv1beta1.Placement, at time.Time) (*placement.Result, error)
}

// Options configure a handler. Fields without a default are required.
type Options struct {
	// Placements reads and decides Placements.
	Placements Placements
	// Authenticator returns the user of a request.
	Authenticator authenticator.Request
	// Authorizer decides whether a user may get or create Placements.
	Authorizer authorizer.UnconditionalAuthorizer
	// All is set if the controller decides all Placements that are not disabled.
	All bool
	// Timeout is the time limit of one request. Zero means [DefaultTimeout].
	Timeout time.Duration
}

type handler struct {
	Options
	turns *fairness.Turns
}

// NewHandler returns a handler for [Path] and everything below it.
func NewHandler(options Options) (http.Handler, error) {
	if options.Placements == nil || options.Authenticator == nil || options.Authorizer == nil {
		return nil, errors.New("debugging of placement: the fields Placements, Authenticator and Authorizer must be set")
	}
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	return &handler{Options: options, turns: fairness.NewTurns(concurrent, maxWaiting)}, nil
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if isForPage(request) {
		pageHandler.ServeHTTP(w, request)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), h.Timeout)
	defer cancel()
	answer, err := h.answer(w, request.WithContext(ctx))
	if err != nil {
		refuse(ctx, w, err)
		return
	}
	status := http.StatusOK
	if answer.Error != "" {
		status = http.StatusInternalServerError
	}
	reply(ctx, w, status, answer)
}

// pageHandler serves the web page. It is the same for all users and has no data of the hub, so it needs no authentication.
var pageHandler = http.StripPrefix(Path, page.Handler(page.Configuration{Backend: page.Placements}))

// isForPage reports whether a request asks for the web page or one of its files. A request with credentials never does: a
// Placement may have the name of a file, such as src/main.js, and each request for a Placement has credentials.
func isForPage(request *http.Request) bool {
	name, ok := strings.CutPrefix(request.URL.Path, Path)
	if !ok || request.Method != http.MethodGet && request.Method != http.MethodHead {
		return false
	}
	if name == "" || name == "/" {
		return true
	}
	return request.Header.Get("Authorization") == "" && strings.HasPrefix(name, "/") && page.Has(name[1:])
}

// answer returns the report for a request. It authenticates the user first, so even a request for an unknown path needs a user.
func (h *handler) answer(w http.ResponseWriter, request *http.Request) (*report.Report, error) {
	who, err := h.authenticate(request)
	if err != nil {
		return nil, err
	}
	segments := strings.Split(strings.TrimPrefix(request.URL.Path, Path), "/")
	switch {
	case !strings.HasPrefix(request.URL.Path, Path) || segments[0] != "":
		return nil, noSuchPath(request)
	case len(segments) == 1 || len(segments) == 2 && segments[1] == "":
		return h.post(w, request, who)
	case len(segments) == 3 && segments[1] != "" && segments[2] != "":
		return h.get(w, request, who, types.NamespacedName{Namespace: segments[1], Name: segments[2]})
	default:
		return nil, noSuchPath(request)
	}
}

// get decides a Placement that is stored on the hub.
func (h *handler) get(w http.ResponseWriter, request *http.Request, who user.Info, key types.NamespacedName) (*report.Report, error) {
	if err := allow(w, request, http.MethodGet); err != nil {
		return nil, err
	}
	if err := h.authorize(request.Context(), who, "get", key); err != nil {
		return nil, err
	}
	object, err := h.Placements.Placement(request.Context(), key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, refusalOf(apierrors.NewNotFound(resource.GroupResource(), key.Name))
	case err != nil:
		return nil, fmt.Errorf("get Placement %s: %w", key, err)
	}
	return h.decide(request, object)
}

// post decides the Placement in the request's body.
func (h *handler) post(w http.ResponseWriter, request *http.Request, who user.Info) (*report.Report, error) {
	if err := allow(w, request, http.MethodPost); err != nil {
		return nil, err
	}
	object, err := decode(w, request, who.GetName())
	if err != nil {
		return nil, err
	}
	if err := h.authorize(request.Context(), who, "create", types.NamespacedName{Namespace: object.Namespace}); err != nil {
		return nil, err
	}
	return h.decide(request, object)
}

// timeOf returns the time in the query, or zero. It rejects times before 1970, because all times stored on a hub are later.
func timeOf(query url.Values) (time.Time, error) {
	if !query.Has(nowParameter) {
		return time.Time{}, nil
	}
	given := query.Get(nowParameter)
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || at.Year() < 1970 {
		return time.Time{}, refusalOf(apierrors.NewBadRequest(fmt.Sprintf(
			"the parameter %s is %q; use a time after 1969, such as 2026-08-01T12:00:00Z, or 2026-08-01T14:00:00%%2B02:00 with the + of its offset escaped",
			nowParameter, report.Clip(given, report.MaxReason))))
	}
	return at.UTC(), nil
}

// decide waits for the namespace's turn and decides a Placement. Schedule limits the time of the decision. The request's
// context limits the total time.
func (h *handler) decide(request *http.Request, object *clusterv1beta1.Placement) (*report.Report, error) {
	object, err := without(object, request.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx := request.Context()
	at, err := timeOf(request.URL.Query())
	if err != nil {
		return nil, err
	}
	end, err := h.turns.Take(ctx, object.Namespace)
	switch {
	case errors.Is(err, fairness.ErrTooMany):
		return nil, refusalOf(apierrors.NewTooManyRequests(
			fmt.Sprintf("%d requests for Placements of the namespace %s are waiting; try again later", maxWaiting, object.Namespace), 1))
	case err != nil:
		return nil, refusalOf(apierrors.NewServerTimeout(resource.GroupResource(), "decide", int(h.Timeout.Seconds())))
	}
	defer end()
	result, err := h.Placements.Schedule(ctx, object, at)
	if result == nil {
		return nil, fmt.Errorf("decide Placement %s/%s: %w", object.Namespace, object.Name, err)
	}
	return report.New(object, result, err, report.Options{Clusters: request.URL.Query()[clusterParameter], Removed: report.MaxRemoved, All: h.All}), nil
}

// withoutParameter is the query parameter with the index of a predicate to leave out.
const withoutParameter = "without"

// without returns a copy of the Placement without the predicate in the query. If the query has no predicate, it returns the
// Placement.
func without(object *clusterv1beta1.Placement, query url.Values) (*clusterv1beta1.Placement, error) {
	if !query.Has(withoutParameter) {
		return object, nil
	}
	text := query.Get(withoutParameter)
	i, err := strconv.Atoi(text)
	changed, ok := report.WithoutPredicate(object, i)
	if err != nil || !ok {
		return nil, refusalOf(apierrors.NewBadRequest(fmt.Sprintf(
			"%s=%s is not the index of a predicate: the Placement has %d predicates, and the first index is 0", withoutParameter, report.Clip(text, report.MaxReason), len(object.Spec.Predicates))))
	}
	return changed, nil
}
