// The answer to an accepted v1 batch: one result for each event, under its uuid. Clients send again what is `retry` and
// nothing else, so every event has to be there.

import type { V1Verdict } from '#core/events/prepare-v1-events.ts'

/** What became of events after they were judged: over a quota, or left out by an instance for imports. */
export type V1LateDrop =
  | 'events_over_quota'
  | 'exceptions_over_quota'
  | 'survey_responses_over_quota'
  | 'llm_events_over_quota'
  | 'non_historical_import_drop'

export interface V1Results {
  /** Of all events, in the order of the request. */
  readonly uuids: readonly string[]
  readonly verdicts: readonly V1Verdict[]
}

export interface V1Answer {
  /** Some events may be sent again. */
  readonly mayRetry: boolean
  readonly body: string
}

/** @param lateDrops by uuid; of events that were accepted otherwise. Source: docs/wire/ingestion.md 4.2. */
export function encodeStored(results: V1Results, lateDrops: ReadonlyMap<string, V1LateDrop>): V1Answer {
  const body = encodeResults(results, (verdict, uuid) => {
    const late = lateDrops.size === 0 ? undefined : lateDrops.get(uuid)
    return late === undefined ? resultOf(verdict) : dropped(late)
  })
  return { mayRetry: false, body }
}

/** The log took none of them: what was to be stored may be sent again, what was dropped stays dropped. */
export function encodeNotStored(results: V1Results): V1Answer {
  const body = encodeResults(results, verdict => (isStored(verdict) ? notPersisted : dropped(verdict)))
  return { mayRetry: results.verdicts.some(isStored), body }
}

export function encodeAllDropped(results: V1Results, reason: V1LateDrop): V1Answer {
  return { mayRetry: false, body: encodeResults(results, () => dropped(reason)) }
}

export function isStored(verdict: V1Verdict): verdict is 'accepted' | 'personless' {
  return verdict === 'accepted' || verdict === 'personless'
}

const accepted = '{"result":"ok"}'
const personless = '{"result":"ok","details":"person_processing_disabled"}'
const notPersisted = '{"result":"retry","details":"not_persisted"}'

function resultOf(verdict: V1Verdict): string {
  if (verdict === 'accepted') return accepted
  return verdict === 'personless' ? personless : dropped(verdict)
}

function dropped(reason: string): string {
  return `{"result":"drop","details":"${reason}"}`
}

/** Neither uuids nor reasons hold anything that JSON would escape. */
function encodeResults({ uuids, verdicts }: V1Results, encode: (verdict: V1Verdict, uuid: string) => string): string {
  let results = ''
  for (let index = 0; index < uuids.length; index++) {
    const uuid = uuids[index]!
    results += `${index === 0 ? '' : ','}"${uuid}":${encode(verdicts[index]!, uuid)}`
  }
  return `{"results":{${results}}}`
}
