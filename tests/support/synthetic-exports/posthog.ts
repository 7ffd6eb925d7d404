// Batch exports of PostHog, as JSONL and as Parquet. Source: docs/wire/import.md §1.8.

import { lineFile, parquetFile } from './export-files.ts'
import { type Happening, uuidFor, wallTime } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

const names: Record<Happening['kind'], string> = {
  view: '$pageview',
  order: 'Order paid',
  click: '$autocapture',
  identify: '$identify',
  session: '$pageleave',
  company: '$groupidentify',
}

export const posthog: SyntheticSource = {
  name: 'posthog',
  open: ({ folder, part, seed }) =>
    part % 2 === 0
      ? rowsOf(lineFile(`${folder}/events-${part}.jsonl.gz`), each => jsonLine(each, eventOf(each, seed)))
      : rowsOf(
          parquetFile(`${folder}/events-${part}.parquet`, [
            ...['uuid', 'event', 'distinct_id', 'properties', 'timestamp', 'created_at', 'elements_chain'].map(
              name => ({ name, type: 'BYTE_ARRAY' as const, converted_type: 'UTF8' as const }),
            ),
            { name: '_inserted_at', type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
          ]),
          each => {
            const { properties, ...event } = eventOf(each, seed)
            return { ...event, properties: JSON.stringify(properties), _inserted_at: BigInt(each.timeUs) }
          },
        ),
}

function eventOf(happening: Happening, seed: number) {
  const { index, kind, timeUs, user, device, fault } = happening
  const time = wallTime(timeUs)
  return {
    ...(fault !== 'without id' && { uuid: uuidFor(seed, index) }),
    event: names[kind],
    distinct_id: fault === 'nobody' ? '' : (user ?? device),
    properties: propertiesOf(happening),
    timestamp: fault === 'bad time' ? 'yesterday' : time,
    created_at: time,
    elements_chain: kind === 'click' ? 'button:text="Jetzt kaufen"' : '',
  }
}

function propertiesOf({ kind, user, device, company, plan, amount, page, index }: Happening): Record<string, unknown> {
  const groups = company === null ? {} : { $groups: { company } }
  switch (kind) {
    case 'identify':
      return user === null
        ? { $set: { plan } }
        : { $anon_distinct_id: device, $set: { plan, page }, $set_once: { first: index } }
    case 'company':
      return { $group_type: 'company', $group_key: company ?? 'company-0', $group_set: { plan, amount } }
    case 'click':
      return { $event_type: 'click', ...groups }
    default:
      return { $current_url: `https://app.example.test${page}`, amount, $lib: 'web', ...groups }
  }
}
