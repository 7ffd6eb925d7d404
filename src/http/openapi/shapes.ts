// JSON Schemas that only describe, by component name: `filters` and the like, which validators of the core check, and
// the bodies and answers of the public paths, which parsers read. No code checks a body with them.

import { flagOperators } from '#core/flags/definitions/validate-filter.ts'

export type Json = Record<string, unknown>

export const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })
export const list = (items: Json): Json => ({ type: 'array', items })
const someOf = (items: Json): Json => ({ ...list(items), minItems: 1 })
export const text: Json = { type: 'string' }
const orNull = (schema: Json): Json => ({ anyOf: [schema, { type: 'null' }] })
const anyValue: Json = {}
const textOrNumber: Json = { type: ['string', 'number'] }
const groupTypeIndex = { type: ['integer', 'null'], minimum: 0, maximum: 4 }
const byName = (additionalProperties: Json, description?: string): Json => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  additionalProperties,
})
const object = (properties: Json, required: readonly string[] = [], description?: string): Json => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  ...(required.length === 0 ? {} : { required }),
  properties,
})

const condition = {
  key: { type: 'string', description: 'Name of the property; of a flag its id, as text; of a cohort `id`.' },
  value: { description: 'What it is compared with; of several in a list one has to fit. Of a cohort its id.' },
  operator: { type: ['string', 'null'], enum: [...flagOperators, null], description: '`exact` unless given.' },
  group_type_index: groupTypeIndex,
}

/** Shapes that people write in definitions. */
const definitionShapes: Readonly<Record<string, Json>> = {
  PropertyFilter: object(
    { ...condition, type: { type: 'string', enum: ['person', 'group', 'cohort', 'flag', 'person_metadata'] } },
    ['key', 'type'],
    'One condition. docs/wire/evaluation.md 5.9 says what each operator takes.',
  ),
  ConditionSet: object(
    {
      properties: orNull({ ...list(ref('PropertyFilter')), description: 'All of them must hold.' }),
      rollout_percentage: { type: ['number', 'null'], minimum: 0, maximum: 100, description: 'null: everybody.' },
      variant: { type: ['string', 'null'], description: 'For whoever matches, instead of the hash.' },
      description: { type: ['string', 'null'] },
      aggregation_group_type_index: groupTypeIndex,
    },
    [],
    'The flag is on for whoever fits one of its sets.',
  ),
  FlagVariant: object(
    { key: text, name: { type: ['string', 'null'] }, rollout_percentage: { type: 'number', minimum: 0, maximum: 100 } },
    ['key', 'rollout_percentage'],
  ),
  FlagFilters: object(
    {
      groups: { ...list(ref('ConditionSet')), description: 'Condition sets, asked in this order.' },
      multivariate: orNull(object({ variants: list(ref('FlagVariant')) }, ['variants'], 'Percentages sum to 100.')),
      payloads: byName(anyValue, 'By variant, or by `true`: JSON, as text.'),
      aggregation_group_type_index: { ...groupTypeIndex, description: 'Decided for groups of this type.' },
      feature_enrollment: { type: ['boolean', 'null'], description: "A person's own choice decides first." },
      super_groups: orNull(list(ref('ConditionSet'))),
      holdout: orNull({ type: 'object' }),
    },
    [],
    'Other fields are kept; misspelt ones are refused.',
  ),
  CohortFilter: object(
    {
      ...condition,
      type: { type: 'string', enum: ['person', 'person_metadata', 'cohort', 'flag'] },
      negation: { type: ['boolean', 'null'] },
    },
    ['key', 'type'],
  ),
  CohortFilterGroup: object(
    {
      type: { type: 'string', enum: ['OR', 'AND'] },
      values: list({ anyOf: [ref('CohortFilterGroup'), ref('CohortFilter')] }),
    },
    ['type', 'values'],
    'At most 64 deep.',
  ),
  CohortFilters: object({ properties: ref('CohortFilterGroup') }, [], 'Empty for a static cohort.'),
  SurveyQuestion: object(
    {
      id: { type: 'string', description: 'Made when it is absent; answers name it.' },
      type: { type: 'string', enum: ['open', 'link', 'rating', 'single_choice', 'multiple_choice'] },
      question: { type: 'string', minLength: 1 },
      ...{
        description: { type: ['string', 'null'] },
        descriptionContentType: { type: 'string', enum: ['html', 'text'] },
      },
      ...{ optional: { type: 'boolean' }, buttonText: text, link: { type: ['string', 'null'] }, display: text },
      ...{ scale: { type: 'number' }, lowerBoundLabel: text, upperBoundLabel: text, choices: list(text) },
      ...{ shuffleOptions: { type: 'boolean' }, hasOpenChoice: { type: 'boolean' }, branching: { type: 'object' } },
    },
    ['type', 'question'],
    'Handed to browsers as it is.',
  ),
  SurveyConditions: object(
    {
      ...{ url: text, urlMatchType: text, selector: text, linkedFlagVariant: { type: ['string', 'null'] } },
      ...{
        deviceTypes: list(text),
        deviceTypesMatchType: text,
        seenSurveyWaitPeriodInDays: { type: ['number', 'null'] },
      },
      ...{ events: { type: ['object', 'null'] }, actions: { type: ['object', 'null'] } },
    },
    [],
    'Where and when it is shown; handed to browsers as they are.',
  ),
  ExperimentParameters: object({
    feature_flag_variants: { ...list(ref('FlagVariant')), description: 'Of a flag that is made: two or more.' },
  }),
}

const flagValue: Json = { type: ['boolean', 'string'] }
const distinctId: Json = { ...textOrNumber, description: 'A number becomes its text.' }
const properties = byName(anyValue)
const apiKey: Json = { type: 'string', description: 'The project API key (`phc_…`).' }

/** Bodies and answers of the public paths. docs/wire has more fields and forms, which SDKs of many years send. */
const wireShapes: Readonly<Record<string, Json>> = {
  EvaluationRequest: object(
    {
      ...{ api_key: apiKey, token: { ...apiKey, description: 'The same.' }, distinct_id: distinctId },
      groups: byName(textOrNumber, 'Group type to group key.'),
      person_properties: byName(anyValue, 'Replace stored ones, key by key.'),
      group_properties: byName(properties, 'By group type; replace stored ones, key by key.'),
      $anon_distinct_id: { type: ['string', 'null'] },
      $device_id: { type: ['string', 'null'] },
      disable_flags: { type: 'boolean' },
      flag_keys_to_evaluate: { anyOf: [list(text), { type: 'null' }] },
      evaluation_contexts: { anyOf: [list(text), { type: 'null' }] },
      geoip_disable: { type: 'boolean' },
      timezone: { type: ['string', 'null'], description: 'Of a visitor without cookies (evaluation.md 1.7).' },
      cookieless_hash_extra: { type: ['string', 'null'], description: 'Hashed for a visitor without cookies.' },
    },
    ['distinct_id'],
    '`api_key` or `token` has to be there. Source: docs/wire/evaluation.md 1.4.',
  ),
  EvaluationResponse: object(
    {
      errorsWhileComputingFlags: { type: 'boolean', description: 'Flags that are missing could not be computed.' },
      featureFlags: { description: 'Flag to value; of `v=1` a list of keys.', anyOf: [byName(flagValue), list(text)] },
      featureFlagPayloads: byName(text),
      flags: byName(ref('FlagDetail'), 'With `v=2` and above of /flags, in place of `featureFlags`.'),
      quotaLimited: list(text),
      ...{
        requestId: text,
        evaluatedAt: { type: 'integer' },
        config: { type: 'object' },
        toolbarParams: { type: 'object' },
      },
      ...{ isAuthenticated: { type: 'boolean' }, supportedCompression: list(text), sessionRecording: flagOrObject() },
    },
    [],
    'With the configuration of clients where that is asked for.',
  ),
  FlagDetail: object(
    {
      ...{
        key: text,
        enabled: { type: 'boolean' },
        variant: { type: ['string', 'null'] },
        failed: { type: 'boolean' },
      },
      value: { ...anyValue, description: 'With `v=3` and above of /flags, in place of `enabled` and `variant`.' },
      reason: object({
        ...{ code: text, condition_index: { type: ['integer', 'null'] }, description: { type: ['string', 'null'] } },
      }),
      metadata: object({
        ...{ id: { type: 'integer' }, version: { type: 'integer' }, description: { type: ['string', 'null'] } },
        ...{ payload: { type: ['string', 'null'] }, has_experiment: { type: 'boolean' } },
        // With `v=3` and above.
        ...{ config_version: { type: 'integer' }, rule_type: text, rule_id: text, variant_key: text },
        ...{ forced_variant: { type: 'boolean' }, experiment_id: { type: 'integer' }, holdout_id: { type: 'integer' } },
      }),
    },
    [],
    'Source: docs/wire/evaluation.md 2.3, 2.9.',
  ),
  CaptureEvent: object(
    {
      event: { type: 'string', minLength: 1 },
      distinct_id: { ...distinctId, description: 'Here or among the properties.' },
      properties,
      timestamp: { type: 'string', description: 'ISO 8601; when it happened.' },
      uuid: { type: 'string', description: 'An event that is sent again with it counts once.' },
      ...{ $set: properties, $set_once: properties },
    },
    ['event'],
  ),
  CaptureRequest: {
    description: 'One event with its key, a list of events, or a batch. Source: docs/wire/ingestion.md 1.3.',
    anyOf: [
      { allOf: [ref('CaptureEvent'), object({ api_key: apiKey, token: apiKey })] },
      ref('BatchRequest'),
      someOf(ref('CaptureEvent')),
    ],
  },
  BatchRequest: object(
    {
      ...{ api_key: apiKey, token: apiKey, batch: someOf(ref('CaptureEvent')) },
      historical_migration: { type: 'boolean', description: 'An import: never charged, times are taken as written.' },
      sent_at: text,
    },
    ['api_key', 'batch'],
  ),
  CaptureAnswer: object(
    {
      status: { description: '`Ok`; old SDKs ask /engage and the like for 1.', anyOf: [text, { type: 'integer' }] },
      quota_limited: list(text),
      events: { description: 'With `verbose=1`: what became of each.', ...list({ type: 'object' }) },
    },
    ['status'],
  ),
  CaptureV1Request: object(
    {
      created_at: text,
      historical_migration: { type: 'boolean' },
      batch: list(
        object({ event: text, uuid: text, distinct_id: text, timestamp: text, properties }, ['event', 'uuid']),
      ),
    },
    ['batch'],
    'Source: docs/wire/ingestion.md 4.',
  ),
  CaptureV1Answer: object({
    results: byName(object({ result: { enum: ['ok', 'warning', 'drop', 'retry'] }, details: text }), 'By uuid.'),
  }),
  RecordingRequest: {
    description: 'A `$snapshot` event or a list of them, with `$session_id`. Source: docs/wire/ingestion.md 1.8.',
    anyOf: [ref('CaptureEvent'), someOf(ref('CaptureEvent')), ref('BatchRequest')],
  },
  OfrepRequest: object({
    context: {
      ...object({ targetingKey: distinctId, groups: byName(textOrNumber), groupProperties: byName(properties) }),
      description:
        '`targetingKey` is the distinct id, everything else a person property. `$timezone` and `$cookieless_extra` are read for a visitor without cookies, too.',
      required: ['targetingKey'],
    },
  }),
  OfrepFlag: object(
    {
      ...{ key: text, value: anyValue, variant: text, reason: text, metadata: { type: 'object' } },
      ...{ errorCode: text, errorDetails: text },
    },
    ['key'],
  ),
  OfrepFlags: object({ flags: list(ref('OfrepFlag')), eventStreams: list({ type: 'object' }) }, ['flags']),
  CaptureV1Error: object({ error: text, error_description: text, error_uri: text }, ['error', 'error_description']),
  OtlpRequest: {
    description: '`resourceLogs`, `resourceMetrics` or `resourceSpans`. Source: docs/wire/ingestion.md 12.',
    type: 'object',
  },
  OtlpAnswer: object({
    partialSuccess: object({
      ...{ rejectedLogRecords: text, rejectedDataPoints: text, rejectedSpans: text },
      errorMessage: text,
    }),
  }),
  OtlpError: object({ code: { type: 'integer' }, message: text }, ['code', 'message']),
  OfrepError: object({ key: text, errorCode: text, errorDetails: text }, ['errorCode', 'errorDetails']),
  FlagDefinitions: object(
    {
      flags: list({ type: 'object' }),
      group_type_mapping: byName(text, 'Index to name of a group type.'),
      cohorts: byName({ type: 'object' }, 'By id, for SDKs that evaluate by themselves.'),
    },
    ['flags'],
  ),
}

function flagOrObject(): Json {
  return { type: ['boolean', 'object'] }
}

export const describedShapes: Readonly<Record<string, Json>> = { ...definitionShapes, ...wireShapes }
