import { useState } from 'react'
import { Badge } from '../../components/controls/badge.tsx'
import { Bar } from '../../components/controls/bar.tsx'
import { Button, ButtonLink, IconButton } from '../../components/controls/button.tsx'
import { Checkbox } from '../../components/controls/checkbox.tsx'
import { Chip, seriesColour } from '../../components/controls/chip.tsx'
import { Link, OutsideLink } from '../../components/controls/link.tsx'
import { RadioGroup, Segments } from '../../components/controls/radio-group.tsx'
import { Switch } from '../../components/controls/switch.tsx'
import { TabLinks, Tabs, tabLinkClass } from '../../components/controls/tabs.tsx'
import { samples } from './samples.ts'
import { Columns, Row, Section } from './section.tsx'
import css from './workbench.module.css'

const seriesPlaces = [0, 1, 2, 3, 4, 5, 6, 7]
const doNothing = () => {}
const readOnly = 'You are a viewer. Grace Hopper can make you an editor.'

export function ControlsSection() {
  const [isOn, setOn] = useState(true)
  const [isChecked, setChecked] = useState(false)
  const [choice, setChoice] = useState('weight')
  const [tags, setTags] = useState(['checkout', 'nordic', samples.rightToLeft, samples.long, ''])
  return (
    <>
      <Section title="Buttons and links">
        <Row>
          <Button>Compare versions</Button>
          <Button kind="filled">Give it to 413 more persons</Button>
          <Button kind="danger" icon="trash">
            Delete new-checkout
          </Button>
          <Button kind="bare">Add a condition</Button>
          <ButtonLink icon="plus" href="#new">
            New flag
          </ButtonLink>
          <IconButton icon="ellipsis" label="More for new-checkout" />
          <IconButton icon="copy" label="Copy the key" kind="plain" />
        </Row>
        <Row>
          <Button isBusy>Save</Button>
          <Button kind="filled" isBusy>
            Replay 1,204
          </Button>
          <Button disabledReason={readOnly}>Turn off</Button>
          <Button kind="filled" disabledReason="Two conditions are not complete">
            Review and save
          </Button>
          <Button kind="danger" disabledReason={readOnly}>
            Delete
          </Button>
          <IconButton icon="trash" label="Delete" disabledReason={readOnly} />
          <Button>{samples.rightToLeft}</Button>
        </Row>
        <Button>{samples.sentence}</Button>
        <p>
          Text with <Link href="#link">a link to a flag</Link>,{' '}
          <OutsideLink href="https://example.com/">a page elsewhere</OutsideLink> and{' '}
          <OutsideLink href={samples.scriptAddress}>what only looks like a link</OutsideLink>.
        </p>
      </Section>
      <Section title="Choices">
        <Columns>
          <div>
            <Checkbox
              label="Keep across log-in"
              isOn={isChecked}
              onChange={setChecked}
              help="Costs a lookup a request"
            />
            <Checkbox label="Some of them" isOn={false} isMixed onChange={doNothing} />
            <Checkbox label="On" isOn onChange={doNothing} />
            <Checkbox label="Cannot be changed" isOn isDisabled onChange={doNothing} />
            <Checkbox label={samples.sentence} isOn={false} onChange={doNothing} error="Tick it, or drop condition 2" />
          </div>
          <div>
            <Switch label="new-checkout" isOn={isOn} onChange={setOn} help="Served since 10:04:12" />
            <Switch label="Being saved" isOn isBusy onChange={doNothing} />
            <Switch label="Off" isOn={false} onChange={doNothing} />
            <Switch label="On, cannot be changed" isOn onChange={doNothing} disabledReason={readOnly} />
            <Switch label="Off, cannot be changed" isOn={false} onChange={doNothing} disabledReason={readOnly} />
          </div>
          <div>
            <RadioGroup
              label="Variant"
              value={choice}
              onChange={setChoice}
              choices={[
                { id: 'weight', label: 'By weight', help: 'control 50.00, test 50.00' },
                { id: 'test', label: 'Always test' },
                { id: 'none', label: 'None that is left', isDisabled: true },
              ]}
            />
          </div>
          <div>
            <Segments
              label="Editor"
              value={choice}
              onChange={setChoice}
              choices={[
                { id: 'weight', label: 'Form' },
                { id: 'test', label: 'JSON' },
                { id: 'none', label: 'Neither', isDisabled: true },
              ]}
            />
          </div>
        </Columns>
      </Section>
      <Section title="Tabs">
        <Tabs
          label="Flag"
          tabs={[
            { id: 'overview', label: 'Overview', content: <p>Served since 10:04:12.</p> },
            { id: 'history', label: 'History', content: <p>14 versions.</p> },
            { id: 'code', label: 'Code', content: <p>Nothing to see.</p>, isDisabled: true },
          ]}
        />
        <TabLinks label="Settings">
          <a href="#project" className={tabLinkClass} aria-current="page">
            Project
          </a>
          <a href="#keys" className={tabLinkClass}>
            Keys
          </a>
          <a href="#users" className={tabLinkClass}>
            Users
          </a>
        </TabLinks>
      </Section>
      <Section title="Badges, chips and bars">
        <Row>
          <Badge kind="on">On</Badge>
          <Badge>Off</Badge>
          <Badge kind="info">Experiment</Badge>
          <Badge kind="caution">Stale: not called for 30 days</Badge>
          <Badge kind="bad">204 refused</Badge>
        </Row>
        <Row>
          {tags.map(tag => (
            <Chip key={tag} text={tag} onRemove={() => setTags(tags.filter(other => other !== tag))} />
          ))}
          <Chip text="read only" />
        </Row>
        <div className={css.swatches}>
          {seriesPlaces.map(place => (
            <Chip key={place} text={`variant ${place + 1}`} series={place} />
          ))}
        </div>
        <p className={css.swatches}>
          {seriesPlaces.map(place => (
            <span key={place} className={css.swatch} style={{ color: seriesColour(place) }}>
              Series {place + 1}
            </span>
          ))}
        </p>
        <Bar action={<Button>Show</Button>}>2 changes.</Bar>
        <Bar kind="caution">Condition 2 is never reached: condition 1 takes everyone.</Bar>
        <Bar kind="bad" action={<Button>Compare</Button>}>
          Not saved: version 14 is served by now.
        </Bar>
      </Section>
    </>
  )
}
