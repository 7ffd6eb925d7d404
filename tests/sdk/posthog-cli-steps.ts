// Calls of the tools of `posthog-cli api`, and the parts of their answers to check: `posthog-cli.nightly.ts` runs these
// steps in order, on a fresh instance.

// biome-ignore lint/suspicious/noExplicitAny: answers of a hundred shapes
export type Json = any

/** The last answer of each tool, for ids that are not known in advance. */
type Seen = Readonly<Record<string, Json>>
/** A tool, its arguments, what of its answer is looked at, and what that has to be. */
export type Step = readonly [
  tool: string,
  args: object | ((seen: Seen) => object),
  told: (answer: Json) => unknown,
  expected: unknown,
]
/** A tool, its arguments, and the sentence with which it fails. */
export type Refusal = readonly [tool: string, args: object | ((seen: Seen) => object), sentence: RegExp]

const keyOf = ({ key }: Json) => key
export const nameOf = ({ name }: Json) => name
const status = ({ status, archived }: Json) => [status, archived]
const forPlan = (value: string) => ({ key: 'plan', type: 'person', operator: 'exact', value: [value] })
const forEverybody = { groups: [{ properties: [], rollout_percentage: 100 }] }
const series = [{ kind: 'EventsNode', event: 'order placed' }]
const withId = (tool: string) => (seen: Seen) => ({ id: seen[tool].id })

/** Flags have ids from 1 on. */
export const flagSteps: readonly Step[] = [
  [
    'create-feature-flag',
    {
      key: 'beta',
      name: 'Beta',
      tags: ['x'],
      filters: { groups: [{ properties: [forPlan('pro')], rollout_percentage: 100 }] },
    },
    ({ id, key, active, tags, filters }) => [id, key, active, tags, filters.groups[0].properties[0].value],
    [1, 'beta', true, ['x'], ['pro']],
  ],
  [
    'create-feature-flag',
    {
      key: 'needs-beta',
      filters: { groups: [{ properties: [{ key: '1', type: 'flag', operator: 'flag_evaluates_to', value: true }] }] },
    },
    ({ id }) => id,
    2,
  ],
  ['feature-flag-get-all', {}, ({ count, results }) => [count, results.map(keyOf)], [2, ['needs-beta', 'beta']]],
  [
    'feature-flag-get-all',
    { search: 'needs', active: 'true', limit: 1 },
    ({ results }) => results.map(keyOf),
    ['needs-beta'],
  ],
  ['feature-flag-get-all', { tags: '["x"]', type: 'boolean' }, ({ results }) => results.map(keyOf), ['beta']],
  ['feature-flag-get-all', { key: 'bet' }, ({ count }) => count, 0],
  ['feature-flag-get-definition', { id: 1 }, ({ key, version }) => [key, version], ['beta', 1]],
  ['feature-flag-get-definition-by-key', { key: 'beta' }, ({ found, id }) => [found, id], [true, 1]],
  ['feature-flag-get-definition-by-key', { key: 'bet' }, ({ found }) => found, false],
  ['update-feature-flag', { id: 1, name: 'Renamed' }, ({ name, version }) => [name, version], ['Renamed', 2]],
  [
    'feature-flags-evaluation-reasons-retrieve',
    { distinct_id: 'ada', flag_keys: ['needs-beta'] },
    answer => answer,
    { 'needs-beta': { value: true, evaluation: { reason: 'condition_match', condition_index: 0 } } },
  ],
  ['feature-flags-my-flags-retrieve', {}, ({ results }) => results.map(({ value }: Json) => value), [false, false]],
  [
    'feature-flags-test-evaluation-create',
    { id: 1, distinct_id: 'ada', groups: { company: 'acme' } },
    ({ result, reason, person_properties }) => [result, reason, person_properties.plan],
    [true, 'condition_match', 'pro'],
  ],
  ['feature-flags-test-evaluation-create', { id: 2, distinct_id: 'bob' }, ({ result }) => result, false],
  [
    'feature-flags-user-blast-radius-create',
    { condition: { properties: [forPlan('pro')], rollout_percentage: 50 } },
    ({ affected, total }) => [affected, total],
    [1, 2],
  ],
  ['feature-flags-dependent-flags-retrieve', { id: 1 }, answer => answer.map(keyOf), ['needs-beta']],
  ['feature-flags-status-retrieve', { id: 1 }, answer => answer.status, 'ACTIVE'],
  ['feature-flag-disable', { id: 2 }, ({ active }) => active, false],
  ['feature-flag-enable', { id: 2 }, ({ active }) => active, true],
  ['feature-flag-archive', { id: 2 }, ({ active, archived }) => [active, archived], [false, true]],
  ['feature-flag-get-all', { archived: 'true' }, ({ results }) => results.map(keyOf), ['needs-beta']],
  ['feature-flag-unarchive', { id: 2 }, ({ active, archived }) => [active, archived], [false, false]],
  [
    'feature-flags-activity-retrieve',
    { id: 1, limit: 1, page: 2 },
    ({ count, results }) => [count, results.map(({ activity }: Json) => activity)],
    [2, ['created']],
  ],
  ['feature-flags-bulk-keys-retrieve', { ids: [1, 2, 99] }, ({ keys }) => keys, { 1: 'beta', 2: 'needs-beta' }],
  [
    'feature-flags-bulk-update-tags-create',
    { ids: [2], action: 'set', tags: ['q'] },
    answer => answer,
    { updated: [{ id: 2, tags: ['q'] }], skipped: [] },
  ],
  [
    'feature-flags-copy-flags-create',
    { feature_flag_key: 'beta', from_project: 1, target_project_ids: [2], disable_copied_flag: true },
    ({ success, failed }) => [success.map(({ key, active }: Json) => [key, active]), failed],
    [[['beta', false]], []],
  ],
]

export const flagEndings: readonly Step[] = [
  [
    'feature-flags-bulk-delete-create',
    { ids: [2] },
    ({ deleted, errors }) => [deleted.map(keyOf), errors],
    [['needs-beta'], []],
  ],
  ['delete-feature-flag', { id: 1 }, ({ deleted }) => deleted, true],
  ['feature-flag-get-all', {}, ({ count }) => count, 0],
]

export const flagRefusals: readonly Refusal[] = [
  [
    'feature-flags-test-evaluation-create',
    { id: 1, distinct_id: 'ada', timestamp: '2026-01-01T00:00:00Z' },
    /timestamp/,
  ],
  ['feature-flags-bulk-delete-create', { filters: { search: 'beta' } }, /filters/],
  [
    'feature-flags-copy-dependencies-check',
    { feature_flag_key: 'beta', from_project: 1, target_project_ids: [2] },
    /404/,
  ],
  [
    'create-feature-flag',
    { key: 'x', filters: { groups: [{ properties: [{ ...forPlan('a'), operator: 'gt', value: 'a' }] }] } },
    /value/,
  ],
]

export const personSteps: readonly Step[] = [
  ['persons-list', {}, ({ results }) => results.map(({ name }: Json) => name).sort(), ['ada@example.com', 'bob']],
  [
    'persons-list',
    { distinct_id: 'ada' },
    ({ results }) => results.map(({ distinct_ids }: Json) => distinct_ids),
    [['ada']],
  ],
  ['persons-list', { email: 'Ada@example.com' }, ({ results }) => results.map(nameOf), ['ada@example.com']],
  ['persons-list', { search: 'bob', limit: 1, offset: 0 }, ({ results }) => results.map(nameOf), ['bob']],
  [
    'persons-retrieve',
    seen => ({ id: String(seen['persons-list'].results[0].id) }),
    ({ properties }) => properties.plan,
    'free',
  ],
  [
    'persons-retrieve',
    seen => ({ id: seen['persons-list'].results[0].uuid }),
    ({ distinct_ids }) => distinct_ids,
    ['bob'],
  ],
  ['persons-values-retrieve', { key: 'plan', value: 'PR' }, ({ results }) => results, [{ name: 'pro', count: 1 }]],
  [
    'cohorts-create',
    {
      name: 'Free',
      filters: {
        properties: { type: 'AND', values: [{ type: 'AND', values: [{ ...forPlan('free'), negation: false }] }] },
      },
    },
    ({ id, is_static }) => [id, is_static],
    [1, false],
  ],
  ['cohorts-create', { name: 'Some', is_static: true }, ({ id, count }) => [id, count], [2, 0]],
  [
    'cohorts-add-persons-to-static-cohort-partial-update',
    seen => ({ id: 2, person_ids: [seen['persons-retrieve'].uuid] }),
    ({ count }) => count,
    1,
  ],
  [
    'persons-cohorts-retrieve',
    seen => ({ person_id: seen['persons-retrieve'].uuid }),
    ({ results }) => results.map(nameOf),
    ['Some', 'Free'],
  ],
  ['cohorts-list', { search: 'fr', limit: 5 }, ({ count, results }) => [count, results.map(nameOf)], [1, ['Free']]],
  ['cohorts-retrieve', { id: 1 }, ({ filters }) => filters.properties.values[0].values[0].value, ['free']],
  ['cohorts-partial-update', { id: 1, name: 'Freed' }, ({ name, version }) => [name, version], ['Freed', 2]],
  [
    'cohorts-rm-person-from-static-cohort-partial-update',
    seen => ({ id: 2, person_id: seen['persons-retrieve'].uuid }),
    ({ count }) => count,
    0,
  ],
  ['cohorts-partial-update', { id: 2, deleted: true }, ({ deleted }) => deleted, true],
]

export const personRefusals: readonly Refusal[] = [
  ['persons-property-set', seen => ({ id: seen['persons-retrieve'].uuid, key: 'plan', value: 'pro' }), /404/],
  ['persons-property-delete', seen => ({ id: seen['persons-retrieve'].uuid, unset: 'plan' }), /404/],
  ['cohorts-create', { name: 'Q', is_static: true, query: { kind: 'HogQLQuery', query: 'SELECT 1' } }, /query/],
]

/** Persons go at last: other steps ask for them. */
export const erasureSteps: readonly Step[] = [
  [
    'persons-bulk-delete',
    { distinct_ids: ['bob'], delete_events: true },
    ({ persons_found, persons_deleted, events_queued_for_deletion }) => [
      ...[persons_found, persons_deleted, events_queued_for_deletion],
    ],
    [1, 1, true],
  ],
  ['persons-list', { distinct_id: 'bob' }, ({ results }) => results, []],
]

export const dataSteps: readonly Step[] = [
  [
    'execute-sql',
    {
      query:
        "SELECT event, count() AS n FROM events WHERE event IN ('order placed', 'signed up') GROUP BY event ORDER BY event",
    },
    ({ results }) => results,
    'event|n\norder placed|2\nsigned up|1',
  ],
  ['read-data-schema', { query: { kind: 'events', limit: 1 } }, answer => answer.split('\n')[1], '- `order placed`'],
  [
    'read-data-schema',
    { query: { kind: 'event_properties', event_name: 'order placed' } },
    answer => /- `price` \(Numeric\)/.test(answer),
    true,
  ],
  [
    'read-data-schema',
    { query: { kind: 'event_property_values', event_name: 'order placed', property_name: 'price' } },
    answer => answer,
    '1499, 99.5',
  ],
  [
    'read-data-schema',
    { query: { kind: 'entity_properties', entity: 'company' } },
    answer => /`seats` \(Numeric\)/.test(answer),
    true,
  ],
  [
    'read-data-schema',
    { query: { kind: 'entity_property_values', entity: 'person', property_name: 'plan' } },
    answer => answer,
    '"free", "pro"',
  ],
  [
    'query-trends',
    { series, dateRange: { date_from: '-7d' } },
    ({ results }) => results.map(({ count }: Json) => count),
    [2],
  ],
  [
    'query-trends',
    {
      series: [{ ...series[0], math: 'sum', math_property: 'price' }],
      breakdownFilter: { breakdowns: [{ property: 'plan', type: 'person' }] },
      dateRange: { date_from: '-7d' },
    },
    ({ results }) => results.map(({ breakdown_value, count }: Json) => [breakdown_value, count]),
    [
      [['pro'], 1499],
      [['free'], 99.5],
    ],
  ],
  [
    'get-llm-total-costs-for-project',
    { days: 7 },
    ({ results }) => results.map(({ count, breakdown_value }: Json) => [count, breakdown_value]),
    [[0.25, 'm1']],
  ],
]

export const dataRefusals: readonly Refusal[] = [
  ['execute-sql', { query: 'SELECT properties.price FROM events' }, /JSONExtractString\(properties, 'price'\)/],
  ['execute-sql', { query: 'SELECT 1', connectionId: 'x' }, /connectionId/],
  ['read-data-schema', { query: { kind: 'event_properties', event_name: 'order place' } }, /no event with this name/],
  ['read-data-schema', { query: { kind: 'action_properties', action_id: 1 } }, /Actions are not supported/],
  ['read-data-schema', { query: { kind: 'entity_properties', entity: 'session' } }, /no sessions table/],
  ['query-trends', { series, trendsFilter: { display: 'BoldNumber' } }, /display/],
  ['query-funnel', { series: [series[0], series[0]] }, /query\.kind/],
  ['query-trends-actors', { source: { kind: 'TrendsQuery', series }, day: '2026-11-27', series: 0 }, /query\.kind/],
  ['event-definition-update', { eventName: 'order placed', data: { description: 'x' } }, /not found/i],
  ['property-definition-update', { propertyName: 'price', data: { description: 'x' } }, /not found/i],
  ['session-recording-get', { id: 'x' }, /404/],
]

/** Experiments have ids from 1 on. */
export const experimentSteps: readonly Step[] = [
  [
    'experiment-create',
    {
      ...{ name: 'Button', feature_flag_key: 'button', description: 'why', stats_config: { method: 'bayesian' } },
      feature_flag: {
        filters: {
          groups: [{ properties: [], rollout_percentage: 40 }],
          multivariate: {
            variants: [
              ['control', 34],
              ['a', 33],
              ['b', 33],
            ].map(([key, rollout_percentage]) => ({ key, rollout_percentage })),
          },
        },
      },
    },
    ({ id, status }) => [id, status],
    [1, 'draft'],
  ],
  [
    'experiment-get',
    { id: 1 },
    ({ stats_config, feature_flag: { filters } }) => [
      stats_config,
      filters.groups[0].rollout_percentage,
      filters.multivariate.variants.map(({ rollout_percentage }: Json) => rollout_percentage),
    ],
    [{ method: 'bayesian' }, 40, [34, 33, 33]],
  ],
  ['experiment-get-by-flag-key', { feature_flag_key: 'button' }, ({ found, id }) => [found, id], [true, 1]],
  [
    'experiment-get-by-flag-key',
    { feature_flag_key: 'butto' },
    ({ found, reason }) => [found, reason],
    [false, 'no_flag'],
  ],
  ['experiment-update', { id: 1, description: 'because' }, ({ description }) => description, 'because'],
  ['experiment-launch', { id: 1 }, status, ['running', false]],
  ['experiment-list', { status: 'running', search: 'butt' }, ({ results }) => results.map(nameOf), ['Button']],
  ['experiment-list', { status: 'draft' }, ({ count }) => count, 0],
  ['experiment-pause', { id: 1 }, status, ['paused', false]],
  ['experiment-resume', { id: 1 }, status, ['running', false]],
  [
    'experiment-ship-variant',
    { id: 1, variant_key: 'a', conclusion: 'won' },
    ({ status, conclusion, feature_flag: { filters } }) => [
      ...[status, conclusion],
      filters.multivariate.variants.map(({ rollout_percentage }: Json) => rollout_percentage),
    ],
    ['stopped', 'won', [0, 100, 0]],
  ],
  ['experiment-archive', { id: 1 }, status, ['stopped', true]],
  ['experiment-list', {}, ({ count }) => count, 0],
  ['experiment-unarchive', { id: 1 }, status, ['stopped', false]],
  ['experiment-reset', { id: 1 }, status, ['draft', false]],
  [
    'experiment-duplicate',
    { id: 1, name: 'Copy', feature_flag_key: 'copy' },
    ({ id, name, feature_flag_key }) => [id, name, feature_flag_key],
    [2, 'Copy', 'copy'],
  ],
  ['experiment-launch', { id: 2 }, status, ['running', false]],
  [
    'experiment-end',
    { id: 2, conclusion: 'lost' },
    ({ status, conclusion }) => [status, conclusion],
    ['stopped', 'lost'],
  ],
  ['experiment-delete', { id: 1 }, ({ deleted }) => deleted, true],
]

export const experimentRefusals: readonly Refusal[] = [
  ['experiment-create', { name: 'T', feature_flag_key: 't', tags: ['x'] }, /tags/],
  ['experiment-list', { tags: '["x"]' }, /tags/],
  ['experiment-update', { id: 2, holdout_id: 1 }, /holdout_id/],
  ['experiment-end', { id: 2, open_cleanup_pr: true }, /open_cleanup_pr/],
  ['experiment-freeze-exposure', { id: 2 }, /404/],
  ['experiment-activity', { id: 2 }, /404/],
  ['experiment-copy-to-project', { id: 2, target_team_id: 2 }, /404/],
  ['experiment-results-get', { experimentId: 2, refresh: false }, /query\.kind/],
  ['experiment-stats', {}, /404/],
  ['experiments-bulk-update-tags-create', { ids: [2], action: 'add', tags: ['x'] }, /405/],
]

export const featureSteps: readonly Step[] = [
  [
    'early-access-feature-create',
    { name: 'New', description: 'd', stage: 'beta' },
    ({ stage, feature_flag: { key, filters } }) => [stage, key, filters.feature_enrollment],
    ['beta', 'new', true],
  ],
  ['early-access-feature-list', { limit: 1 }, ({ count, results }) => [count, results.map(nameOf)], [1, ['New']]],
  ['early-access-feature-retrieve', withId('early-access-feature-create'), nameOf, 'New'],
  [
    'early-access-feature-partial-update',
    ({ 'early-access-feature-create': { id } }) => ({ id, stage: 'general-availability', name: 'Newer' }),
    ({ stage, name }) => [stage, name],
    ['general-availability', 'Newer'],
  ],
  ['early-access-feature-destroy', withId('early-access-feature-create'), answer => answer, {}],
  ['early-access-feature-list', {}, ({ count }) => count, 0],
]

const aSurvey = withId('survey-create')
export const surveySteps: readonly Step[] = [
  [
    'survey-create',
    {
      ...{ name: 'Why', description: '', type: 'popover', schedule: 'once', responses_limit: 10 },
      ...{ questions: [{ type: 'open', question: 'What?' }], targeting_flag_filters: forEverybody },
    },
    ({ name, responses_limit, targeting_flag, start_date }) => [
      ...[name, responses_limit, targeting_flag.filters.groups[0].rollout_percentage, start_date],
    ],
    ['Why', 10, 100, null],
  ],
  [
    'surveys-get-all',
    { search: 'wh', archived: false, type: 'popover' },
    ({ results }) => results.map(nameOf),
    ['Why'],
  ],
  ['surveys-get-all', { status: 'running' }, ({ count }) => count, 0],
  ['survey-get', aSurvey, ({ questions }) => questions.map(({ question }: Json) => question), ['What?']],
  ['survey-update', seen => ({ ...aSurvey(seen), name: 'Why not' }), nameOf, 'Why not'],
  ['survey-launch', aSurvey, ({ start_date }) => typeof start_date, 'string'],
]

/** After two persons saw the survey, and one of them answered. */
export const surveyEndings: readonly Step[] = [
  [
    'survey-stats',
    aSurvey,
    ({ stats }) => [stats['survey shown'].total_count, stats['survey sent'].total_count],
    [2, 1],
  ],
  ['surveys-global-stats', {}, ({ stats }) => stats['survey shown'].unique_persons, 2],
  ['survey-stop', aSurvey, ({ end_date }) => typeof end_date, 'string'],
  ['survey-delete', aSurvey, ({ archived }) => archived, true],
]

export const surveyRefusals: readonly Refusal[] = [
  ['surveys-responses-list', aSurvey, /404/],
  ['survey-stats', seen => ({ ...aSurvey(seen), include_per_question_stats: true }), /include_per_question_stats/],
]

export const projectSteps: readonly Step[] = [
  ['organizations-get', {}, answer => answer.map(nameOf), ['Pennon']],
  ['organizations-list', { limit: 1 }, ({ results }) => results.map(nameOf), ['Pennon']],
  ['organization-get', {}, ({ name, projects }) => [name, projects.map(({ id }: Json) => id)], ['Pennon', [1, 2]]],
  ['projects-get', {}, answer => answer.map(({ id }: Json) => id), [1, 2]],
  ['project-get', { id: 2 }, nameOf, 'Second'],
  [
    'project-settings-update',
    { id: 1, timezone: 'Europe/Berlin', test_account_filters: [{ ...forPlan('free'), operator: 'is_not' }] },
    ({ timezone, test_account_filters }) => [timezone, test_account_filters.length],
    ['Europe/Berlin', 1],
  ],
  [
    'query-trends',
    { series, filterTestAccounts: true, dateRange: { date_from: '-7d' } },
    ({ results }) => results.map(({ count }: Json) => count),
    [1],
  ],
  ['user-get', {}, ({ team, organization }) => [team.id, organization.name], [1, 'Pennon']],
  [
    'switch-organization',
    seen => ({ orgId: seen['organization-get'].id }),
    ({ content }) => /Pennon/.test(content[0].text),
    true,
  ],
  [
    'switch-project',
    { projectId: 1 },
    ({ content }) => /\(id: 1,.*Person-on-events mode is enabled/s.test(content[0].text),
    true,
  ],
]

export const projectRefusals: readonly Refusal[] = [
  [
    'project-settings-update',
    { id: 1, session_recording_retention_period: '1y' },
    /session_recording_retention_period/,
  ],
  ['project-settings-update', { id: 1, tags: ['x'] }, /tags/],
  ['project-get', { id: 99 }, /404/],
]
