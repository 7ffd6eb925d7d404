import { useState } from 'react'
import { Button } from '../../components/controls/button.tsx'
import { Link } from '../../components/controls/link.tsx'
import { showToast } from '../../components/overlays/toasts.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { StaleBar } from '../../components/states/stale-bar.tsx'
import { EmptyState, ErrorState, Gone, NoMatch, NotAllowed } from '../../components/states/states.tsx'
import { samples } from './samples.ts'
import { Columns, Row, Section } from './section.tsx'
import css from './workbench.module.css'

export function StatesSection() {
  const [retryAtMs] = useState(() => Date.now() + 3_600_000)
  const details = 'Request 0199-1234, 30 Nov 2026, 10:04:12 UTC'
  const [untilMs, setUntilMs] = useState<number>()
  const retry = () => showToast({ text: 'Tried again' })
  return (
    <Section title="States">
      <StaleBar asOfMs={retryAtMs} />
      <Row>
        <Button onPress={() => setUntilMs(Date.now() + 5_000)}>Start a countdown</Button>
      </Row>
      <Columns>
        <div className={css.framed}>
          <Skeleton what="flags" rowCount={5} />
        </div>
        <div className={css.framed}>
          <EmptyState title="No flags yet" action={<Button icon="plus">New flag</Button>}>
            A flag turns a part of your product on for some persons and not for others. Nobody has made one here.
          </EmptyState>
        </div>
        <div className={css.framed}>
          <NoMatch filter={`${samples.override} ${samples.markup}`} onClear={retry} />
        </div>
        <div className={css.framed}>
          <ErrorState title="The flags could not be loaded" code="state_unavailable" onRetry={retry} details={details}>
            The store of flags does not answer. Flags that are in memory are served as before.
          </ErrorState>
        </div>
        <div className={css.framed}>
          <ErrorState
            title="Too many requests"
            code="rate_limited"
            onRetry={retry}
            retryAtMs={retryAtMs}
            details={details}
          />
        </div>
        <div className={css.framed}>
          <ErrorState title="The server is starting" onRetry={retry} retryAtMs={untilMs} />
        </div>
        <div className={css.framed}>
          <NotAllowed what="Persons">
            The right <code>person:read</code> is missing. Grace Hopper can give it.
          </NotAllowed>
        </div>
        <div className={css.framed}>
          <Gone title="This person was merged">
            Merged into <Link href="#ada">Ada Lovelace</Link> on 29 Nov 2026.
          </Gone>
        </div>
      </Columns>
    </Section>
  )
}
