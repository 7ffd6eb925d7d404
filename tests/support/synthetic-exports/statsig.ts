// Events of Statsig. Source: docs/wire/import.md §1.10.

import { lineFile } from './export-files.ts'
import type { Happening } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

const names: Record<Happening['kind'], string> = {
  view: 'auto_capture::page_view',
  order: 'Order paid',
  click: 'auto_capture::click',
  identify: 'auto_capture::page_view_end',
  session: 'auto_capture::session_start',
  company: 'company_seen',
}

export const statsig: SyntheticSource = {
  name: 'statsig',
  open: ({ folder, part }) =>
    rowsOf(lineFile(`${folder}/events-${part}.jsonl.gz`), each => jsonLine(each, rowOf(each))),
}

function rowOf({ index, kind, timeUs, user, device, plan, amount, page, bigId, fault }: Happening): object {
  const hasNoIds = fault === 'nobody'
  return {
    event_name: names[kind],
    user_id: hasNoIds ? '' : user,
    device_id: hasNoIds ? '' : device,
    timestamp: fault === 'bad time' ? 'soon' : String(Math.floor(timeUs / 1_000)),
    value: page,
    sdk_key: 'client-secret',
    metadata: { browser_name: 'Firefox', plan, amount, ...(fault !== 'without id' && { n: index, big: bigId }) },
  }
}
