// A project's first steps: its key, and how to point an SDK here.

import { useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { sessionQuery } from '../../api/session.ts'
import { Tabs } from '../../components/controls/tabs.tsx'
import { CopyButton } from '../../components/overlays/copy-button.tsx'
import { Gone } from '../../components/states/states.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { Page } from '../../shell/page.tsx'
import css from './home.module.css'
import { listSnippets } from './snippets.ts'

export function Home() {
  const { data: session } = useSuspenseQuery(sessionQuery)
  const { projectId } = useParams({ from: '/app/p/$projectId/' })
  const project = session.projects.find(({ id }) => String(id) === projectId)
  if (project === undefined)
    return (
      <Page title="Home">
        <Gone title="There is no such project">It was deleted, or you may not see it.</Gone>
      </Page>
    )
  const { sdk_url: host } = session
  const snippets = listSnippets(host, project.api_token)
  return (
    <Page title={project.name}>
      <section className={css.part}>
        <h2>Send something</h2>
        <p>
          Any PostHog SDK works unchanged. Its host is this address, its key the key of the project, which is public.
        </p>
        <dl className={css.facts}>
          <dt>Host</dt>
          <dd>
            <Outside text={host} isCode /> <CopyButton text={host} label="Copy the host" />
          </dd>
          <dt>Project key</dt>
          <dd>
            <Outside text={project.api_token} isCode />{' '}
            <CopyButton text={project.api_token} label="Copy the project key" />
          </dd>
          <dt>Time zone</dt>
          <dd>{project.timezone}</dd>
        </dl>
        <Tabs
          label="SDK"
          tabs={snippets.map(({ id, label, code }) => ({
            ...{ id, label },
            content: (
              <div className={css.snippet}>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
                <pre tabIndex={0} aria-label={`Code for ${label}`} role="region">
                  {code}
                </pre>
                <CopyButton text={code} label="Copy the code" hasWords />
              </div>
            ),
          }))}
        />
      </section>
    </Page>
  )
}
