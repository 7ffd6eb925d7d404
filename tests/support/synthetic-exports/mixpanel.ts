// Mixpanel's raw export and its export of profiles. Source: docs/wire/import.md §1.2.

import { lineFile } from './export-files.ts'
import type { Happening } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

const names: Record<Happening['kind'], string> = {
  view: '$mp_web_page_view',
  order: 'Order paid',
  click: '$mp_click',
  identify: '$identify',
  session: '$mp_page_leave',
  company: 'Company seen',
}

export const mixpanel: SyntheticSource = {
  name: 'mixpanel',
  config: { profile_timestamp: '2024-04-02T00:00:00Z' },
  open: ({ folder, part, seed }) =>
    rowsOf(lineFile(`${folder}/mixpanel-${part}.jsonl.gz`), each =>
      jsonLine(each, each.kind === 'company' ? profileOf(each) : eventOf(each, seed)),
    ),
}

function eventOf({ index, kind, timeUs, user, device, plan, amount, page, fault }: Happening, seed: number): object {
  const time = Math.floor(timeUs / 1_000)
  return {
    event: names[kind],
    properties: {
      time: fault === 'bad time' ? 'soon' : time,
      distinct_id: fault === 'nobody' ? '' : (user ?? `$device:${device}`),
      ...(fault !== 'without id' && { $insert_id: `${seed}-${index}` }),
      ...(fault !== 'nobody' && { $device_id: device }),
      ...(fault !== 'nobody' && user !== null && { $user_id: user }),
      ...(kind === 'identify' && user !== null && { $identified_id: user, $anon_id: `$device:${device}` }),
      $browser: 'Firefox',
      $city: 'Århus',
      mp_country_code: 'DK',
      current_url_path: page,
      mp_processing_time_ms: time + 700,
      plan,
      amount,
    },
  }
}

function profileOf({ user, device, plan, amount }: Happening): object {
  return {
    $distinct_id: user ?? device,
    $properties: { $email: `${user ?? device}@example.test`, $city: 'Århus', $last_seen: '2024-04-01', plan, amount },
  }
}
