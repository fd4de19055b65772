// Runs the conformance tests of the Gateway API against a frontdesk that listens on ports of this machine.
package conformance

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var (
	portsFlag   = flag.String("ports", "", "ports of listeners and of this machine: 80=34567,443=34568")
	logsFlag    = flag.String("pod-logs", "", "the folder with the log <pod>.log of each pod")
	resultsFlag = flag.String("results", "", "the file to write results to, one JSON object a line")
)

// The features are those that the status of the GatewayClass lists. The suite's own flags name the class, and the tests to skip.
func TestConformance(t *testing.T) {
	ports, err := parsePorts(*portsFlag)
	require.NoError(t, err)
	results, err := os.Create(*resultsFlag)
	require.NoError(t, err)
	// Later than the tests that run in parallel.
	t.Cleanup(func() { results.Close() })

	options := conformance.DefaultOptions(t)
	options.CleanupBaseResources = false
	options.TimeoutConfig = timeouts()
	options.RoundTripper = newRoundTripper(ports, options.TimeoutConfig)
	options.GRPCClient = grpcClient{ports}
	options.WebSocketDialer = webSocketDialer{ports}
	options.RestConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return podLogs{*logsFlag, next} })
	options.Hook = func(t *testing.T, test suite.ConformanceTest, _ *suite.ConformanceTestSuite) {
		require.NoError(t, json.NewEncoder(results).Encode(resultOf(t, test)))
	}

	runner, err := suite.NewConformanceTestSuite(options)
	require.NoError(t, err)
	runner.Setup(t, tests.ConformanceTests)
	require.NoError(t, runner.Run(t, tests.ConformanceTests))
}

type result struct {
	Name     string   `json:"name"`
	Features []string `json:"features"`
	Result   string   `json:"result"`
}

func resultOf(t *testing.T, test suite.ConformanceTest) result {
	features := []string{}
	for _, feature := range test.Features {
		features = append(features, string(feature))
	}
	outcome := "passed"
	if t.Failed() {
		outcome = "failed"
	} else if t.Skipped() {
		outcome = "skipped"
	}
	return result{Name: test.ShortName, Features: features, Result: outcome}
}

// Nothing here takes long, so a test that fails ends soon.
func timeouts() config.TimeoutConfig {
	result := config.DefaultTimeoutConfig()
	for _, timeout := range []*time.Duration{
		&result.GatewayMustHaveAddress,
		&result.GatewayMustHaveCondition,
		&result.GatewayStatusMustHaveListeners,
		&result.GatewayListenersMustHaveConditions,
		&result.GWCMustBeAccepted,
		&result.HTTPRouteMustNotHaveParents,
		&result.HTTPRouteMustHaveCondition,
		&result.RouteMustHaveParents,
		&result.MaxTimeToConsistency,
		&result.LatestObservedGenerationSet,
		&result.DefaultTestTimeout,
	} {
		*timeout = 10 * time.Second
	}
	result.NamespacesMustBeReady = 30 * time.Second
	return result
}
