// Rows of the BigQuery export of Google Analytics 4, in which integers are texts. Source: docs/wire/import.md §1.5.

import { lineFile } from './export-files.ts'
import { type Happening, wallTime } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

const names: Record<Happening['kind'], string> = {
  view: 'page_view',
  order: 'purchase',
  click: 'scroll',
  identify: 'login',
  session: 'session_start',
  company: 'view_promotion',
}

export const ga4: SyntheticSource = {
  name: 'ga4',
  open: ({ folder, part }) =>
    rowsOf(lineFile(`${folder}/events_${String(part).padStart(12, '0')}.json.gz`), each => jsonLine(each, rowOf(each))),
}

function rowOf({ index, kind, timeUs, user, device, plan, amount, page, fault }: Happening): object {
  const hasNoIds = fault === 'nobody'
  return {
    event_date: wallTime(timeUs).slice(0, 10).replaceAll('-', ''),
    event_timestamp: fault === 'bad time' ? null : String(timeUs),
    event_name: names[kind],
    stream_id: '55',
    user_pseudo_id: hasNoIds ? null : device,
    user_id: hasNoIds ? null : user,
    // GA4 has no event ids; without these fields, rows of one microsecond collide.
    ...(fault !== 'without id' && { event_bundle_sequence_id: String(index), batch_event_index: '2' }),
    event_params: [
      { key: 'page_location', value: { string_value: `https://www.example.test${page}` } },
      { key: 'ga_session_id', value: { int_value: String(Math.floor(timeUs / 3_600_000_000) * 3_600) } },
      { key: 'entrances', value: { int_value: '9007199254740993' } },
      { key: 'value', value: { double_value: amount } },
    ],
    user_properties: [{ key: 'plan', value: { string_value: plan } }],
    items: kind === 'order' ? [{ item_id: 'sku-ø', price: amount, quantity: '2' }] : [],
    device: { category: 'desktop', operating_system: 'Windows', web_info: { browser: 'Chrome' } },
    geo: { country: 'Perú', city: '(not set)' },
    traffic_source: { source: 'google', medium: 'organic', name: '(not set)' },
    platform: 'WEB',
  }
}
