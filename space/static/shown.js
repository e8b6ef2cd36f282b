// What the server says of something that was asked, as HTML that it escaped; read out as soon as it is there.
export function start(element, props, trigger, watch) {
  const place = element.querySelector("[role]");
  const show = () => {
    const parsed = new DOMParser().parseFromString(props.value ?? "", "text/html");
    place.replaceChildren(...parsed.body.childNodes);
  };
  watch("value", show);
  show();
}
