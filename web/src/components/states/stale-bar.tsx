import { useContext } from 'react'
import { Bar } from '../controls/bar.tsx'
import { findZone } from '../text/format-time.ts'
import { locale } from '../text/locale.ts'
import { TimeZonesContext } from '../text/time.tsx'

/** What is shown is old, since the server does not answer. It stays readable; what writes is disabled meanwhile. */
export function StaleBar({ asOfMs }: { asOfMs: number }) {
  const zone = findZone(useContext(TimeZonesContext))
  const time = new Intl.DateTimeFormat(locale, { timeStyle: 'medium', hourCycle: 'h23', timeZone: zone }).format(asOfMs)
  return <Bar kind="caution">As of {time}. The server does not answer; trying again.</Bar>
}
