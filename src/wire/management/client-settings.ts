// Checks of a project's settings for its clients (`core/client-settings.ts`) that a schema cannot express.

import { type ClientSettingName, keptSettings } from '#core/client-settings.ts'
import { getOwnValue, isJsonObject, isRawNumber, type JsonObject, type JsonValue, toCompactJson } from '#core/json.ts'
import { parseRecordingHost } from '#core/recording-domains.ts'

const keptNames = Object.keys(keptSettings) as (keyof typeof keptSettings)[]
/** Limits the JSON of a setting that is only stored and returned: every front holds all such settings in memory. */
const keptCharsMax = 16_384

/** The settings of a body in their stored form. */
export function decodeClientSettings(sent: JsonObject): JsonObject {
  const name: ClientSettingName = 'session_recording_sample_rate'
  const rate = getOwnValue(sent, name)
  return rate === undefined ? sent : { ...sent, [name]: normalizeRate(rate) }
}

export interface ClientSettingIssue {
  readonly name: ClientSettingName
  readonly message: string
}

/** The first issue that a schema cannot express. @param settings from `decodeClientSettings`. */
export function findClientSettingsIssue(settings: JsonObject): ClientSettingIssue | null {
  const rate = getOwnValue(settings, 'session_recording_sample_rate') ?? null
  if (rate !== null && !(typeof rate === 'string' && /^(?:0\.\d\d|1\.00)$/.test(rate)))
    return { name: 'session_recording_sample_rate', message: 'Must be a number from 0 to 1.' }
  const linked = getOwnValue(settings, 'session_recording_linked_flag') ?? null
  if (isJsonObject(linked)) {
    const key = getOwnValue(linked, 'key')
    const variant = getOwnValue(linked, 'variant') ?? null
    if (typeof key !== 'string' || key === '')
      return { name: 'session_recording_linked_flag', message: 'The linked flag must have a key.' }
    if (variant !== null && typeof variant !== 'string')
      return { name: 'session_recording_linked_flag', message: 'The variant must be a string or null.' }
  }
  const domains = getOwnValue(settings, 'recording_domains') ?? null
  if (Array.isArray(domains)) {
    const wrong = domains.find(domain => parseRecordingHost(String(domain)) === null)
    if (wrong !== undefined) return { name: 'recording_domains', message: `No host found in ${JSON.stringify(wrong)}.` }
  }
  const large = keptNames.find(name => toCompactJson(getOwnValue(settings, name) ?? null).length > keptCharsMax)
  return large === undefined ? null : { name: large, message: `Must have at most ${keptCharsMax} characters of JSON.` }
}

/**
 * A rate as decimal text with two places, as PostHog stores it; other values stay unchanged, and `findClientSettingsIssue`
 * refuses them.
 */
function normalizeRate(value: JsonValue): JsonValue {
  const literal = isRawNumber(value) ? value.rawJSON : value
  if (typeof literal !== 'number' && typeof literal !== 'string') return value
  const written = String(literal)
  return written.length <= 20 && /^\d+(?:\.\d+)?$/.test(written) ? Number(written).toFixed(2) : value
}
