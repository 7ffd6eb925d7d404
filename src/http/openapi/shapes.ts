// JSON Schemas by component name that only describe and do not check: `filters` and similar fields, which validators of the
// core check, and the bodies and answers of the public paths, which parsers read.

import { flagOperators } from '#core/flags/definitions/validate-filter.ts'

export type Json = Record<string, unknown>

export const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })
export const arraySchema = (items: Json): Json => ({ type: 'array', items })
const nonEmptyArraySchema = (items: Json): Json => ({ ...arraySchema(items), minItems: 1 })
export const text: Json = { type: 'string' }
const orNull = (schema: Json): Json => ({ anyOf: [schema, { type: 'null' }] })
const anyValue: Json = {}
const textOrNumber: Json = { type: ['string', 'number'] }
const groupTypeIndex = { type: ['integer', 'null'], minimum: 0, maximum: 4 }
const mapSchema = (additionalProperties: Json, description?: string): Json => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  additionalProperties,
})
const objectSchema = (properties: Json, required: readonly string[] = [], description?: string): Json => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  ...(required.length === 0 ? {} : { required }),
  properties,
})

const condition = {
  key: {
    type: 'string',
    description: 'Property name. For `type: flag`, the flag id as text; for `type: cohort`, `id`.',
  },
  value: { description: 'Value to compare with. A list matches if any of its values does. For a cohort, its id.' },
  operator: { type: ['string', 'null'], enum: [...flagOperators, null], description: 'Default: `exact`.' },
  group_type_index: groupTypeIndex,
}

/** Shapes that people write in definitions. */
const definitionShapes: Readonly<Record<string, Json>> = {
  PropertyFilter: objectSchema(
    { ...condition, type: { type: 'string', enum: ['person', 'group', 'cohort', 'flag', 'person_metadata'] } },
    ['key', 'type'],
    'One condition. docs/wire/evaluation.md 5.9 lists the operators and the values they accept.',
  ),
  ConditionSet: objectSchema(
    {
      properties: orNull({ ...arraySchema(ref('PropertyFilter')), description: 'All must match.' }),
      rollout_percentage: { type: ['number', 'null'], minimum: 0, maximum: 100, description: 'null: all users.' },
      variant: { type: ['string', 'null'], description: 'Variant for every match, instead of hashing.' },
      description: { type: ['string', 'null'] },
      aggregation_group_type_index: groupTypeIndex,
    },
    [],
    'The flag is on for every subject that matches one of its condition sets.',
  ),
  FlagVariant: objectSchema(
    { key: text, name: { type: ['string', 'null'] }, rollout_percentage: { type: 'number', minimum: 0, maximum: 100 } },
    ['key', 'rollout_percentage'],
  ),
  FlagFilters: objectSchema(
    {
      groups: { ...arraySchema(ref('ConditionSet')), description: 'Condition sets, evaluated in this order.' },
      multivariate: orNull(
        objectSchema({ variants: arraySchema(ref('FlagVariant')) }, ['variants'], 'Percentages sum to 100.'),
      ),
      payloads: mapSchema(anyValue, 'JSON text by variant key, or by `true` for a flag without variants.'),
      aggregation_group_type_index: {
        ...groupTypeIndex,
        description: 'Evaluates the flag for groups of this type instead of persons.',
      },
      feature_enrollment: {
        type: ['boolean', 'null'],
        description: "The person's early access choice takes precedence.",
      },
      super_groups: orNull(arraySchema(ref('ConditionSet'))),
      holdout: orNull({ type: 'object' }),
    },
    [],
    'Unknown fields are stored; misspelt known ones are rejected.',
  ),
  CohortFilter: objectSchema(
    {
      ...condition,
      type: { type: 'string', enum: ['person', 'person_metadata', 'cohort', 'flag'] },
      negation: { type: ['boolean', 'null'] },
    },
    ['key', 'type'],
  ),
  CohortFilterGroup: objectSchema(
    {
      type: { type: 'string', enum: ['OR', 'AND'] },
      values: arraySchema({ anyOf: [ref('CohortFilterGroup'), ref('CohortFilter')] }),
    },
    ['type', 'values'],
    'Nested at most 64 levels deep.',
  ),
  CohortFilters: objectSchema({ properties: ref('CohortFilterGroup') }, [], 'Empty for a static cohort.'),
  SurveyQuestion: objectSchema(
    {
      id: { type: 'string', description: 'Generated if absent. Survey responses refer to it.' },
      type: { type: 'string', enum: ['open', 'link', 'rating', 'single_choice', 'multiple_choice'] },
      question: { type: 'string', minLength: 1 },
      ...{
        description: { type: ['string', 'null'] },
        descriptionContentType: { type: 'string', enum: ['html', 'text'] },
      },
      ...{ optional: { type: 'boolean' }, buttonText: text, link: { type: ['string', 'null'] }, display: text },
      ...{ scale: { type: 'number' }, lowerBoundLabel: text, upperBoundLabel: text, choices: arraySchema(text) },
      ...{ shuffleOptions: { type: 'boolean' }, hasOpenChoice: { type: 'boolean' }, branching: { type: 'object' } },
    },
    ['type', 'question'],
    'Passed to browsers unchanged.',
  ),
  SurveyConditions: objectSchema(
    {
      ...{ url: text, urlMatchType: text, selector: text, linkedFlagVariant: { type: ['string', 'null'] } },
      ...{
        deviceTypes: arraySchema(text),
        deviceTypesMatchType: text,
        seenSurveyWaitPeriodInDays: { type: ['number', 'null'] },
      },
      ...{ events: { type: ['object', 'null'] }, actions: { type: ['object', 'null'] } },
    },
    [],
    'Where and when the survey is shown. Passed to browsers unchanged.',
  ),
  ExperimentParameters: objectSchema({
    feature_flag_variants: {
      ...arraySchema(ref('FlagVariant')),
      description: 'Variants of the flag to create: two or more.',
    },
  }),
}

const flagValue: Json = { type: ['boolean', 'string'] }
const distinctId: Json = { ...textOrNumber, description: 'Numbers are converted to text.' }
const properties = mapSchema(anyValue)
const apiKey: Json = { type: 'string', description: 'The project API key (`phc_…`).' }

/** Bodies and answers of the public paths. docs/wire describes further fields and forms, which older SDKs send. */
const wireShapes: Readonly<Record<string, Json>> = {
  EvaluationRequest: objectSchema(
    {
      ...{ api_key: apiKey, token: { ...apiKey, description: 'Alias of `api_key`.' }, distinct_id: distinctId },
      groups: mapSchema(textOrNumber, 'Group keys by group type.'),
      person_properties: mapSchema(anyValue, 'Override stored properties, key by key.'),
      group_properties: mapSchema(properties, 'Properties by group type. Override stored properties, key by key.'),
      $anon_distinct_id: { type: ['string', 'null'] },
      $device_id: { type: ['string', 'null'] },
      disable_flags: { type: 'boolean' },
      flag_keys_to_evaluate: { anyOf: [arraySchema(text), { type: 'null' }] },
      evaluation_contexts: { anyOf: [arraySchema(text), { type: 'null' }] },
      geoip_disable: { type: 'boolean' },
      timezone: { type: ['string', 'null'], description: 'Time zone of a cookieless visitor (evaluation.md 1.7).' },
      cookieless_hash_extra: {
        type: ['string', 'null'],
        description: 'Added to the hash that identifies a cookieless visitor.',
      },
    },
    ['distinct_id'],
    '`api_key` or `token` is required. Source: docs/wire/evaluation.md 1.4.',
  ),
  EvaluationResponse: objectSchema(
    {
      errorsWhileComputingFlags: {
        type: 'boolean',
        description: 'True if some flags could not be computed; those are missing.',
      },
      featureFlags: {
        description: 'Values by flag key; with `v=1`, a list of enabled keys.',
        anyOf: [mapSchema(flagValue), arraySchema(text)],
      },
      featureFlagPayloads: mapSchema(text),
      flags: mapSchema(ref('FlagDetail'), 'Replaces `featureFlags` on /flags with `v=2` and above.'),
      quotaLimited: arraySchema(text),
      ...{
        requestId: text,
        evaluatedAt: { type: 'integer' },
        config: { type: 'object' },
        toolbarParams: { type: 'object' },
      },
      ...{
        isAuthenticated: { type: 'boolean' },
        supportedCompression: arraySchema(text),
        sessionRecording: flagOrObjectSchema(),
      },
    },
    [],
    'Includes the client configuration if requested.',
  ),
  FlagDetail: objectSchema(
    {
      ...{
        key: text,
        enabled: { type: 'boolean' },
        variant: { type: ['string', 'null'] },
        failed: { type: 'boolean' },
      },
      value: { ...anyValue, description: 'Replaces `enabled` and `variant` on /flags with `v=3` and above.' },
      reason: objectSchema({
        ...{ code: text, condition_index: { type: ['integer', 'null'] }, description: { type: ['string', 'null'] } },
      }),
      metadata: objectSchema({
        ...{ id: { type: 'integer' }, version: { type: 'integer' }, description: { type: ['string', 'null'] } },
        ...{ payload: { type: ['string', 'null'] }, has_experiment: { type: 'boolean' } },
        // These fields are sent only with `v=3` and above.
        ...{ config_version: { type: 'integer' }, rule_type: text, rule_id: text, variant_key: text },
        ...{ forced_variant: { type: 'boolean' }, experiment_id: { type: 'integer' }, holdout_id: { type: 'integer' } },
      }),
    },
    [],
    'Source: docs/wire/evaluation.md 2.3, 2.9.',
  ),
  CaptureEvent: objectSchema(
    {
      event: { type: 'string', minLength: 1 },
      distinct_id: { ...distinctId, description: 'Required here or in `properties`.' },
      properties,
      timestamp: { type: 'string', description: 'When the event happened, in ISO 8601.' },
      uuid: {
        type: 'string',
        description: 'Deduplication key: an event sent again with the same uuid is stored once.',
      },
      ...{ $set: properties, $set_once: properties },
    },
    ['event'],
  ),
  CaptureRequest: {
    description: 'One event with its key, a list of events, or a batch. Source: docs/wire/ingestion.md 1.3.',
    anyOf: [
      { allOf: [ref('CaptureEvent'), objectSchema({ api_key: apiKey, token: apiKey })] },
      ref('BatchRequest'),
      nonEmptyArraySchema(ref('CaptureEvent')),
    ],
  },
  BatchRequest: objectSchema(
    {
      ...{ api_key: apiKey, token: apiKey, batch: nonEmptyArraySchema(ref('CaptureEvent')) },
      historical_migration: {
        type: 'boolean',
        description: 'Marks an import: events are not billed, and timestamps are stored as sent.',
      },
      sent_at: text,
    },
    ['api_key', 'batch'],
  ),
  CaptureAnswer: objectSchema(
    {
      status: {
        description: '`Ok`. On endpoints of old SDKs, such as /engage, 1.',
        anyOf: [text, { type: 'integer' }],
      },
      quota_limited: arraySchema(text),
      events: { description: 'With `verbose=1`: the outcome of each event.', ...arraySchema({ type: 'object' }) },
    },
    ['status'],
  ),
  CaptureV1Request: objectSchema(
    {
      created_at: text,
      historical_migration: { type: 'boolean' },
      batch: arraySchema(
        objectSchema({ event: text, uuid: text, distinct_id: text, timestamp: text, properties }, ['event', 'uuid']),
      ),
    },
    ['batch'],
    'Source: docs/wire/ingestion.md 4.',
  ),
  CaptureV1Answer: objectSchema({
    results: mapSchema(
      objectSchema({ result: { enum: ['ok', 'warning', 'drop', 'retry'] }, details: text }),
      'Results by event uuid.',
    ),
  }),
  RecordingRequest: {
    description: 'A `$snapshot` event or a list of them, with `$session_id`. Source: docs/wire/ingestion.md 1.8.',
    anyOf: [ref('CaptureEvent'), nonEmptyArraySchema(ref('CaptureEvent')), ref('BatchRequest')],
  },
  OfrepRequest: objectSchema({
    context: {
      ...objectSchema({
        targetingKey: distinctId,
        groups: mapSchema(textOrNumber),
        groupProperties: mapSchema(properties),
      }),
      description:
        '`targetingKey` is the distinct id; all other fields are person properties. `$timezone` and `$cookieless_extra` also identify cookieless visitors.',
      required: ['targetingKey'],
    },
  }),
  OfrepFlag: objectSchema(
    {
      ...{ key: text, value: anyValue, variant: text, reason: text, metadata: { type: 'object' } },
      ...{ errorCode: text, errorDetails: text },
    },
    ['key'],
  ),
  OfrepFlags: objectSchema({ flags: arraySchema(ref('OfrepFlag')), eventStreams: arraySchema({ type: 'object' }) }, [
    'flags',
  ]),
  CaptureV1Error: objectSchema({ error: text, error_description: text, error_uri: text }, [
    'error',
    'error_description',
  ]),
  OtlpRequest: {
    description: '`resourceLogs`, `resourceMetrics` or `resourceSpans`. Source: docs/wire/ingestion.md 12.',
    type: 'object',
  },
  OtlpAnswer: objectSchema({
    partialSuccess: objectSchema({
      ...{ rejectedLogRecords: text, rejectedDataPoints: text, rejectedSpans: text },
      errorMessage: text,
    }),
  }),
  OtlpError: objectSchema({ code: { type: 'integer' }, message: text }, ['code', 'message']),
  OfrepError: objectSchema({ key: text, errorCode: text, errorDetails: text }, ['errorCode', 'errorDetails']),
  FlagDefinitions: objectSchema(
    {
      flags: arraySchema({ type: 'object' }),
      group_type_mapping: mapSchema(text, 'Group type names by index.'),
      cohorts: mapSchema({ type: 'object' }, 'Cohorts by id, for local evaluation.'),
    },
    ['flags'],
  ),
}

function flagOrObjectSchema(): Json {
  return { type: ['boolean', 'object'] }
}

export const describedShapes: Readonly<Record<string, Json>> = { ...definitionShapes, ...wireShapes }
