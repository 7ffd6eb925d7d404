import { useState } from 'react'
import { parseJson } from '#core/json.ts'
import { JsonView } from '../../components/json/json-view.tsx'
import { CopyableOutside } from '../../components/overlays/copy-button.tsx'
import { Count } from '../../components/text/count.tsx'
import { formatBytes, formatPercentage } from '../../components/text/format-number.ts'
import { Outside } from '../../components/text/outside.tsx'
import { Time, TimeZonesContext } from '../../components/text/time.tsx'
import { samples } from './samples.ts'
import { Columns, Section } from './section.tsx'
import css from './workbench.module.css'

const flags = { one: 'flag', other: 'flags' }
const document = `{"id":12345678901234567890,"weight":1.0,"on":true,"none":null,"empty":{},"list":[],"__proto__":{"a":"b"},
  "name":${JSON.stringify(samples.rightToLeft)},"override":${JSON.stringify(samples.override)},
  "long":${JSON.stringify(samples.long)},"items":[${Array.from({ length: 200 }, (_, item) => item)}]}`
const deep = `${'['.repeat(300)}1.0${']'.repeat(300)}`

export function TextSection() {
  const [nowMs] = useState(Date.now)
  return (
    <Section title="Text, numbers, times and JSON">
      <Columns>
        <dl className={css.terms}>
          {Object.entries(samples).map(([name, text]) => (
            <div key={name} style={{ display: 'contents' }}>
              <dt>{name}</dt>
              <dd>
                <CopyableOutside text={text} />
              </dd>
            </div>
          ))}
          <dt>empty</dt>
          <dd>
            <Outside text="" />
          </dd>
          <dt>code</dt>
          <dd>
            <Outside text="new-checkout" isCode />
          </dd>
          <dt>lines</dt>
          <dd>
            <Outside text={samples.control} isMultiline />
          </dd>
        </dl>
        <dl className={css.terms}>
          <dt>exact</dt>
          <dd>
            <Count value={34_226} words={flags} />
          </dd>
          <dt>one</dt>
          <dd>
            <Count value={1} words={flags} />
          </dd>
          <dt>more</dt>
          <dd>
            <Count value={10_000} words={flags} isMore />
          </dd>
          <dt>short</dt>
          <dd>
            <Count value={1_234_567} isShort />
          </dd>
          <dt>share</dt>
          <dd>{formatPercentage(33.33)}</dd>
          <dt>bytes</dt>
          <dd>{formatBytes(1_310_720)}</dd>
          <dt>near</dt>
          <dd>
            <Time at={nowMs - 240_000} />
          </dd>
          <dt>far</dt>
          <dd>
            <Time at="2026-11-20T10:04:12Z" />
          </dd>
          <dt>exact, UTC</dt>
          <dd>
            <TimeZonesContext value={{ choice: 'utc', project: 'America/Santiago' }}>
              <Time at={nowMs} form="exact" />
            </TimeZonesContext>
          </dd>
          <dt>none</dt>
          <dd>
            <Time at="soon" />
          </dd>
        </dl>
        <JsonView label="Properties" value={parseJson(document)} source={document} />
        <JsonView label="300 levels" value={parseJson(deep)} />
        <JsonView label="Only a number" value={parseJson('1.50')} />
      </Columns>
    </Section>
  )
}
