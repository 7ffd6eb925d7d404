// The answer to an accepted v1 batch: one result for each event, under its uuid. Clients send again what is `retry` and
// nothing else, so every event has to be there. Made in steps, since a batch may have hundreds of thousands of events.

import { type V1Results, type V1Verdict, v1Verdicts } from '#core/capture/prepare-v1-events.ts'
import type { EventResource } from '#core/capture/quota-resource.ts'
import { uuidTextLength } from '#core/events/uuid.ts'
import type { Steps } from '#core/maybe-steps.ts'

/** An event that was left out after it was accepted. */
export interface V1OverQuota {
  readonly uuid: string
  readonly resource: EventResource
}

export interface V1Answer {
  /** Some events may be sent again. */
  readonly mayRetry: boolean
  /** JSON text. */
  readonly body: Buffer
}

/**
 * @param overQuota in the order of the request.
 * @param hot those that are stored without a person, since their distinct id sends too many; in the order of the request too.
 * Source: docs/wire/ingestion.md 4.2.
 */
export function* encodeStored(
  results: V1Results,
  overQuota: readonly V1OverQuota[],
  hot: readonly { readonly uuid: string }[] = [],
): Steps<V1Answer> {
  let nextOver = 0
  let nextHot = 0
  const body = yield* encodeResults(results, (verdict, uuid) => {
    const over = overQuota[nextOver]
    if (over !== undefined && over.uuid === uuid) {
      nextOver++
      return overQuotaTexts[over.resource]
    }
    if (hot[nextHot]?.uuid !== uuid) return storedTexts[verdict]
    nextHot++
    return verdict === 'accepted' ? hotText : storedTexts[verdict]
  })
  return { mayRetry: false, body }
}

/** The log took none of them: what was to be stored may be sent again, what was dropped stays dropped. */
export function* encodeNotStored(results: V1Results): Steps<V1Answer> {
  const body = yield* encodeResults(results, verdict => (isStored(verdict) ? notPersisted : storedTexts[verdict]))
  return { mayRetry: results.verdicts.some(place => isStored(v1Verdicts[place]!)), body }
}

/** The instance takes historical migrations alone. Source: docs/wire/ingestion.md 5. */
export function* encodeDiscarded(results: V1Results): Steps<V1Answer> {
  const text = dropped('non_historical_import_drop')
  return { mayRetry: false, body: yield* encodeResults(results, () => text) }
}

function isStored(verdict: V1Verdict): boolean {
  return verdict === 'accepted' || verdict === 'personless'
}

const hotText = '{"result":"warning","details":"person_processing_disabled"}'
const notPersisted = '{"result":"retry","details":"not_persisted"}'

const storedTexts = Object.fromEntries(
  v1Verdicts.map(verdict => [verdict, isStored(verdict) ? '{"result":"ok"}' : dropped(verdict)]),
) as Record<V1Verdict, string>
storedTexts.personless = '{"result":"ok","details":"person_processing_disabled"}'

/** The quota of events leaves something of a batch only where the age of some makes them imports. */
const overQuotaTexts: Record<EventResource, string> = {
  events: dropped('events_over_quota'),
  exceptions: dropped('exceptions_over_quota'),
  survey_responses: dropped('survey_responses_over_quota'),
  llm_events: dropped('llm_events_over_quota'),
}

function dropped(reason: string): string {
  return `{"result":"drop","details":"${reason}"}`
}

const resultsPerStep = 1_000

/** Neither uuids nor reasons hold anything that JSON would escape, or that is no ASCII. */
function* encodeResults(
  { uuids, verdicts }: V1Results,
  resultOf: (verdict: V1Verdict, uuid: string) => string,
): Steps<Buffer> {
  const uuidTexts = Buffer.from(uuids.buffer, uuids.byteOffset, uuids.length)
  const pieces: Buffer[] = []
  let text = '{"results":{'
  for (let index = 0; index < verdicts.length; index++) {
    const uuid = uuidTexts.toString('latin1', index * uuidTextLength, (index + 1) * uuidTextLength)
    text += `${index === 0 ? '' : ','}"${uuid}":${resultOf(v1Verdicts[verdicts[index]!]!, uuid)}`
    if ((index + 1) % resultsPerStep !== 0) continue
    pieces.push(Buffer.from(text, 'latin1'))
    text = ''
    yield
  }
  pieces.push(Buffer.from(`${text}}}`, 'latin1'))
  return Buffer.concat(pieces)
}
