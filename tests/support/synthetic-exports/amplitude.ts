// Amplitude's export: a zip of `.json.gz`, with rows of merge files among the events. Source: docs/wire/import.md §1.1.

import { zipFile } from './export-files.ts'
import { type Happening, uuidFor, wallTime } from './happenings.ts'
import { jsonLine, type SyntheticSource } from './synthetic-source.ts'

const names: Record<Happening['kind'], string> = {
  view: '[Amplitude] Page Viewed',
  order: 'Order paid',
  click: '[Amplitude] Element Clicked',
  identify: '$identify',
  session: 'session_start',
  company: 'Company seen',
}
const mergeEvery = 500

export const amplitude: SyntheticSource = {
  name: 'amplitude',
  open: ({ folder, part, seed }) => {
    const zip = zipFile(`${folder}/amplitude-${part}.zip`, { linesMax: 2_500 })
    return {
      add(each) {
        zip.add({ entry: '9001/9001_2024-03-01_#.json.gz', line: jsonLine(each, eventOf(each, seed)) })
        if (each.index % mergeEvery === 0)
          zip.add({ entry: '9001/merges_#.json.gz', line: jsonLine({ ...each, fault: null }, mergeOf(each)) })
      },
      end: () => zip.end(),
    }
  },
}

function eventOf(happening: Happening, seed: number): object {
  const { index, kind, timeUs, user, device, company, plan, amount, page, bigId, fault } = happening
  const hasNoIds = fault === 'nobody'
  return {
    event_type: names[kind],
    user_id: hasNoIds ? null : user,
    device_id: hasNoIds || (user !== null && index % 3 === 0) ? null : device,
    ...(!hasNoIds && { amplitude_id: bigId }),
    app: 9001,
    $insert_id: fault === 'without id' ? null : `${seed}-${index}`,
    uuid: fault === 'without id' || index % 2 === 0 ? null : uuidFor(seed, index),
    event_time: fault === 'bad time' ? 'soon' : wallTime(timeUs),
    session_id: Math.floor(timeUs / 3_600_000_000) * 3_600_000,
    platform: 'Web',
    os_name: 'Chrome',
    os_version: '124',
    device_type: 'Windows',
    country: 'Côte d’Ivoire',
    paying: index % 2,
    event_properties: { '[Amplitude] Page Path': page, '[Amplitude] Element Text': 'Köp', amount, coupon: 'EMPTY' },
    user_properties: { initial_utm_source: 'EMPTY', initial_utm_medium: 'cpc', plan },
    groups: company === null ? {} : { org: [company, 'all'] },
    group_properties: company !== null && kind === 'company' ? { org: { [company]: { plan } } } : {},
  }
}

/** Amplitude merged two of its ids: in most cases one of them is in no event. */
function mergeOf({ timeUs, bigId }: Happening): object {
  return { scope: 9001, merge_time: wallTime(timeUs), amplitude_id: bigId, merged_amplitude_id: bigId + 2n }
}
