// A project's settings for its clients, by the names of PostHog's project API. They are stored as sent
// (`Project.clientSettings`); a setting that was never set is absent. `../browser/client-config.ts` turns them into
// what clients read, and ignores the settings that are only kept (`kept-settings.ts`).
// Source: docs/wire/evaluation.md 2.5.

import Type, { type Static, type TSchema } from 'typebox'
import {
  compactJson,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  ownValue,
  setOwn,
} from '#core/json.ts'
import { recordingHost } from '#core/recording-domains.ts'
import { keptSettingsDefaults, keptSettingsFields } from './kept-settings.ts'
import { jsonObjectSchema, nullable } from './shapes.ts'

const onOff = (description?: string) => nullable(Type.Boolean(description === undefined ? {} : { description }))
const textSchema = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const urlTriggers = () =>
  nullable(
    Type.Array(Type.Object({ url: textSchema(2_000), matching: Type.Literal('regex') }), {
      maxItems: 100,
      description: 'URL patterns, matched by the browser.',
    }),
  )

/** Each may be null, which means not set. */
export const clientSettingsFields = {
  autocapture_opt_out: onOff('Browsers do not send `$autocapture`.'),
  autocapture_exceptions_opt_in: onOff(),
  autocapture_web_vitals_opt_in: onOff(),
  autocapture_web_vitals_allowed_metrics: nullable(Type.Array(textSchema(20), { maxItems: 20 })),
  capture_performance_opt_in: onOff('Record network timing.'),
  capture_console_log_opt_in: onOff('Record console output.'),
  capture_dead_clicks: onOff(),
  heatmaps_opt_in: onOff(),
  surveys_opt_in: onOff('false hides all surveys; otherwise running surveys are shown.'),
  survey_config: nullable(jsonObjectSchema('Default `appearance` of surveys, and other settings.')),
  session_recording_opt_in: onOff(),
  session_recording_sample_rate: nullable(
    Type.Unknown({
      description: 'Share of sessions to record, 0 to 1, as a number or decimal text; stored with two decimal places.',
    }),
  ),
  session_recording_minimum_duration_milliseconds: nullable(Type.Integer({ minimum: 0, maximum: 30_000 })),
  session_recording_linked_flag: nullable(
    jsonObjectSchema('`{key, variant?}`: record only users for whom this flag is on.', ['id', 'key', 'variant']),
  ),
  session_recording_network_payload_capture_config: nullable(
    jsonObjectSchema('Of requests.', ['recordBody', 'recordHeaders']),
  ),
  session_recording_masking_config: nullable(
    jsonObjectSchema('Of pages.', ['maskAllInputs', 'maskTextSelector', 'blockSelector']),
  ),
  session_recording_url_trigger_config: urlTriggers(),
  session_recording_url_blocklist_config: urlTriggers(),
  session_recording_event_trigger_config: nullable(Type.Array(textSchema(200), { maxItems: 100 })),
  session_recording_trigger_match_type_config: nullable(Type.Union([Type.Literal('all'), Type.Literal('any')])),
  session_replay_config: nullable(jsonObjectSchema('Of canvases.', ['record_canvas'])),
  recording_domains: nullable(
    Type.Array(textSchema(500), {
      maxItems: 200,
      description: 'Record only pages on these hosts; `*` matches any text.',
    }),
  ),
  flags_persistence_default: onOff(),
  minimal_flag_called_events: onOff('SDKs send smaller `$feature_flag_called` events.'),
  ...keptSettingsFields,
} satisfies Record<string, TSchema>

export type ClientSettingName = keyof typeof clientSettingsFields
const names = Object.keys(clientSettingsFields) as ClientSettingName[]
const keptNames = Object.keys(keptSettingsFields) as (keyof typeof keptSettingsFields)[]

/** The schema of an answer, which has every setting. */
export const clientSettingsSchema = Type.Object(clientSettingsFields)
export type ClientSettingsJson = Static<typeof clientSettingsSchema>
/** The schema of a request body. */
export const clientSettingsPatchSchema = Type.Partial(clientSettingsSchema)

/** Values of settings that were never set, as in PostHog's answers. */
const defaults: Readonly<Partial<Record<ClientSettingName, JsonValue>>> = {
  session_recording_opt_in: false,
  minimal_flag_called_events: false,
  ...keptSettingsDefaults,
}
/** Bounds the JSON of a setting that is only kept and returned, because every front holds all of them in memory. */
const keptCharsMax = 16_384

export function encodeClientSettings(stored: JsonObject): ClientSettingsJson {
  const settings: JsonObject = {}
  for (const name of names) settings[name] = ownValue(stored, name) ?? defaults[name] ?? null
  return settings as unknown as ClientSettingsJson
}

/** The settings of a body in their stored form; undefined when it has none. */
export function decodeClientSettings(body: object): JsonObject | undefined {
  const settings: JsonObject = {}
  for (const name of names) {
    const value = ownValue(body as JsonObject, name)
    if (value !== undefined) setOwn(settings, name, name === 'session_recording_sample_rate' ? rateText(value) : value)
  }
  return Object.keys(settings).length === 0 ? undefined : settings
}

export interface ClientSettingIssue {
  readonly name: ClientSettingName
  readonly message: string
}

/** The first issue that a schema cannot express. @param settings from `decodeClientSettings`. */
export function clientSettingsIssue(settings: JsonObject): ClientSettingIssue | null {
  const rate = ownValue(settings, 'session_recording_sample_rate') ?? null
  if (rate !== null && !(typeof rate === 'string' && /^(?:0\.\d\d|1\.00)$/.test(rate)))
    return { name: 'session_recording_sample_rate', message: 'Must be a number from 0 to 1.' }
  const linked = ownValue(settings, 'session_recording_linked_flag') ?? null
  if (isJsonObject(linked)) {
    const key = ownValue(linked, 'key')
    const variant = ownValue(linked, 'variant') ?? null
    if (typeof key !== 'string' || key === '')
      return { name: 'session_recording_linked_flag', message: 'The linked flag must have a key.' }
    if (variant !== null && typeof variant !== 'string')
      return { name: 'session_recording_linked_flag', message: 'The variant must be a string or null.' }
  }
  const domains = ownValue(settings, 'recording_domains') ?? null
  if (Array.isArray(domains)) {
    const wrong = domains.find(domain => recordingHost(String(domain)) === null)
    if (wrong !== undefined) return { name: 'recording_domains', message: `No host found in ${JSON.stringify(wrong)}.` }
  }
  const large = keptNames.find(name => compactJson(ownValue(settings, name) ?? null).length > keptCharsMax)
  return large === undefined ? null : { name: large, message: `Must have at most ${keptCharsMax} characters of JSON.` }
}

/** Decimal text with two places, as PostHog stores it; other values stay, and `clientSettingsIssue` refuses them. */
function rateText(value: JsonValue): JsonValue {
  const literal = isRawNumber(value) ? value.rawJSON : value
  if (typeof literal !== 'number' && typeof literal !== 'string') return value
  const written = String(literal)
  return written.length <= 20 && /^\d+(?:\.\d+)?$/.test(written) ? Number(written).toFixed(2) : value
}
