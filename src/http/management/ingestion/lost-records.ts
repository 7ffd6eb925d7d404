// Records that the log has lost, for the operator: which projects they belonged to cannot be known.

import type { LogLoss } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { countedPageSchema, instant } from '#wire/management/shapes.ts'
import { type LostRecordsJson, lostRecordsSchema } from '#wire/management/status.ts'
import { wireError } from '#wire/wire-error.ts'
import { answer, permissionDenied, refusal } from '../kit/answers.ts'
import { isLimited } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { instanceRoutes, type ManagementRoute } from '../kit/endpoint.ts'
import { countedPage } from '../kit/page.ts'
import { pageParams } from '../kit/query-params.ts'

type LostRecordsDeps = EndpointDeps & Pick<ManagementDeps, 'log'>

export function lostRecordsRoutes(deps: LostRecordsDeps): ManagementRoute[] {
  return instanceRoutes(deps, {
    method: 'GET',
    paths: ['/api/instance/lost_records'],
    id: 'lost_records_list',
    tag: 'ingestion',
    summary:
      'Accepted records of the whole instance that the log has lost or finds damaged, newest first, until somebody removes log/lost-records.jsonl.',
    scope: '*',
    query: pageParams(),
    success: { status: 200, schema: countedPageSchema(lostRecordsSchema) },
    handle: async ({ caller, request, query }) => {
      if (isLimited(caller)) return refusal(limitedKey)
      try {
        const losses = (await deps.log.losses()).toReversed()
        const results: LostRecordsJson[] = fitting(losses.slice(query.offset, query.offset + query.limit)).map(
          loss => ({
            lane: loss.stream,
            from_offset: loss.fromOffset,
            to_offset: loss.toOffset,
            record_count: loss.recordCount ?? loss.toOffset - loss.fromOffset,
            file: loss.file,
            noticed_at: instant(loss.noticedAtMs),
            body: loss.body ?? null,
          }),
        )
        return answer(200, countedPage(request, query, losses.length, results))
      } catch (error) {
        if (!(error instanceof PortError)) throw error
        return refusal(logUnavailable)
      }
    },
  })
}

/** Bounds the bytes of damaged records in one page. */
const pageBytesMax = 1024 * 1024

/** The losses that fit into a page; always at least the first, if there is one. */
function fitting(losses: readonly LogLoss[]): readonly LogLoss[] {
  let bytes = 0
  const end = losses.findIndex(({ body = '' }, index) => {
    bytes += body.length
    return bytes > pageBytesMax && index > 0
  })
  return end === -1 ? losses : losses.slice(0, end)
}

const limitedKey = permissionDenied('A key that is limited to some projects cannot see the records of all of them.')

const logUnavailable = wireError(
  503,
  'transient_error',
  'The log cannot be read at the moment; make the same call again.',
)
